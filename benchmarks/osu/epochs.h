// The synchronisation that -s asks for, around operations between a rank and its peer. What can stay open over many
// operations (the lock below a flush) is opened by begin() and closed by end(), outside the clock.
#pragma once

#include <mpi.h>

#include "options.h"

namespace osu {

class Epochs {
  public:
    Epochs(Sync sync, MPI_Win win, int peer, MPI_Comm comm) : sync_(sync), win_(win), peer_(peer) {
        MPI_Comm_rank(comm, &rank_);
        MPI_Group everyone = MPI_GROUP_NULL;
        MPI_Comm_group(comm, &everyone);
        MPI_Group_incl(everyone, 1, &peer, &peer_group_);
        MPI_Group_free(&everyone);
    }
    ~Epochs() { MPI_Group_free(&peer_group_); }
    Epochs(const Epochs&) = delete;
    Epochs& operator=(const Epochs&) = delete;

    // Fences are collective: with Sync::fence every rank of the window calls these as often as every other.
    void begin(bool sends) {
        if (sync_ == Sync::fence) MPI_Win_fence(MPI_MODE_NOPRECEDE, win_);
        if (sends && (sync_ == Sync::flush || sync_ == Sync::flush_local))
            MPI_Win_lock(MPI_LOCK_SHARED, peer_, 0, win_);
    }

    void end(bool sends) {
        if (sync_ == Sync::fence) MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED, win_);
        if (sends && (sync_ == Sync::flush || sync_ == Sync::flush_local)) MPI_Win_unlock(peer_, win_);
    }

    // One synchronised round: `issue` starts the operations of a rank that sends; a rank that receives lets its peer.
    template <class Issue>
    void round(bool sends, bool receives, Issue&& issue) {
        switch (sync_) {
            case Sync::lock:
                if (!sends) break;
                MPI_Win_lock(MPI_LOCK_SHARED, peer_, 0, win_);
                issue();
                MPI_Win_unlock(peer_, win_);
                break;
            case Sync::flush:
                if (!sends) break;
                issue();
                MPI_Win_flush(peer_, win_);
                break;
            case Sync::flush_local:
                if (!sends) break;
                issue();
                MPI_Win_flush_local(peer_, win_);
                break;
            case Sync::lock_all:
                if (!sends) break;
                MPI_Win_lock_all(0, win_);
                issue();
                MPI_Win_unlock_all(win_);
                break;
            case Sync::pscw:
                if (receives) MPI_Win_post(peer_group_, 0, win_);
                if (sends) {
                    MPI_Win_start(peer_group_, 0, win_);
                    issue();
                    MPI_Win_complete(win_);
                }
                if (receives) MPI_Win_wait(win_);
                break;
            case Sync::fence:
                if (sends) issue();
                MPI_Win_fence(0, win_);
                break;
        }
    }

    // The owner's own loads and stores go between these. The lock is shared because the peer may still hold one.
    void own_begin() {
        if (!is_active(sync_)) MPI_Win_lock(MPI_LOCK_SHARED, rank_, 0, win_);
    }
    void own_end() {
        if (!is_active(sync_)) MPI_Win_unlock(rank_, win_);
    }

  private:
    Sync sync_;
    MPI_Win win_;
    int peer_;
    int rank_ = 0;
    MPI_Group peer_group_ = MPI_GROUP_NULL;
};

}  // namespace osu
