/* away.pml with the death of a process at any point: of one on the node or on another, that holds the lock or waits for it,
 * or of the target itself, whose thread acts for the other nodes. Who is told that the lock is broken, or that the target is
 * gone, ends. Claims as there, but for the refusals: every living process ends, with the lock or with that news; nobody
 * gets the lock after a holder's death.
 * MUTATIONS: BREAK_FORGETS_AWAY ORPHANS_WAIT NEVER_LOOKS DEAD_HOLDS_ON
 */
#define DEATH
#define LOCALS 1
#define AWAYS 2
#include "away.pml"
