/* away.pml with three processes of other nodes, that want the lock exclusively, and two of the node, of which some are
 * inside a lock_all: such that some follow the holder in turns, or one does while another stands in the queue with the cell and
 * somebody comes who must not be passed. src/net/target/target_locks.cpp: unlock, resume_queue; src/sync/lock.cpp: hand_off.
 * MUTATIONS: CELL_NOT_RENAMED TURN_WHILE_HELD
 */
#define LOCALS 2
#define AWAYS 3
#define ANY_KIND false
#include "away.pml"
