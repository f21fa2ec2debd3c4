// MPI 4.1, 12.4 and 12.7.3: an update that its origin completes shows in the target's memory without its calls.
// case: a target that polls its memory without calls, in a window over memory of malloc
#include "target_polls.h"

int main() {
    begin();
    int* base = (int*)std::malloc(64);
    return poll_for_update(create(base, 64), base);
}
