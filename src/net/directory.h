// Finds the processes of other nodes. A node's table has the address of the first process of each node; those of the
// others are looked up when first used: one process of this node asks a *keeper* for the addresses of all processes of
// that node, and enters them into the table. The keepers of a node's addresses are its own first process and that of
// the next node. So a process gets at most as many requests as there are nodes, and memory grows with the nodes that
// this one uses.
//
// Lock order: a Job's, a request's; a Job's, those of the connections, the messenger and the sender.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "net/messenger.h"
#include "net/process_table.h"

namespace osc::net {

class LookUpRequest;

/// All processes of a team, and what this one asks about them. Thread-safe once it is admitted (Connections::admit).
struct Job : ProcessTable {
    std::uint64_t number = 0;  // the team's: equal in all its processes, unique in the job
    std::uint32_t node = 0;    // this process's
    std::uint32_t me = 0;      // its rank
    sync::Liveness* liveness = nullptr;
    std::atomic<bool> admitted{false};  // by all its processes: a look-up before would be dropped as a stranger's

    /// Whether other nodes lack the address of this process.
    bool lacks_own() const { return !is_public(place_of(me)); }
    /// This process knows the others of a part (AddressForm::write_others).
    void learn(std::uint32_t part, std::span<const std::byte> its) const;
    /// Before the table is unmapped: answers that come later are dropped.
    void end_look_ups();

  private:
    friend class Directory;
    struct LookUp {
        std::shared_ptr<LookUpRequest> request;  // the last one
        std::uint32_t keepers = 0;               // how many this process has asked
    };
    std::mutex mutex_;
    std::map<std::uint32_t, LookUp> own_look_ups_;  // by part
};

/// Thread-safe.
class Directory {
  public:
    Directory(Connections& connections, Messenger& messenger, FabricSender& sender)
        : connections_(connections), messenger_(messenger), sender_(sender) {}

    enum class Found {
        Yes,
        Asked,  // a process of this node asks a keeper, or will when all have admitted the team: call again
        No,     // the keepers of the address have died, or the provider refuses it
    };
    /// The connection to a process, without waiting.
    Found find(Job& job, std::uint32_t rank, Connection*& peer);
    /// The same, waiting for keepers; null if there is none. For application threads without any lock.
    Connection* connect(Job& job, std::uint32_t rank, progress::ProgressEngine& engine);
    /// False if the process is known to be dead. Otherwise asks it if it has been silent, without waiting.
    bool alive(Job& job, std::uint32_t rank);

  private:
    Found look_up(Job& job, std::uint32_t rank, std::uint32_t part);
    void look_at_keeper(Job& job, std::uint32_t rank);

    Connections& connections_;
    Messenger& messenger_;
    FabricSender& sender_;
};

}  // namespace osc::net
