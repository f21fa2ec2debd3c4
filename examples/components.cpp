// Connected components by parallel search: each rank searches from one of its vertices, colours the neighbours that
// have no component yet, and notes a collision where two searches meet; when all vertices are coloured, the collisions
// say which components are one. A rank reaches a vertex of another rank once only: it remembers by which component, and
// a second one that comes there meets the first. One-sided: the colours are in a window and every vertex reached is one
// MPI_Compare_and_swap; no rank waits for another before the end. With --messages: neighbours of other ranks are sent
// to their owners in bundles, and all ranks meet whenever their local work is done.
#include "graph.h"

using example::Bundles;
using example::Graph;
using example::Options;
using example::Progress;
using example::Session;

namespace {

constexpr std::int64_t kNone = -1;

struct Settings {
    example::GraphSource source;
    long batch = 1024;
    bool messages = false;
    bool unchecked = false;
};

struct Pair {
    std::int64_t low;
    std::int64_t high;
    bool operator<(const Pair& other) const { return low != other.low ? low < other.low : high < other.high; }
    bool operator==(const Pair& other) const { return low == other.low && high == other.high; }
};

// The pairs of components that have met, without duplicates as often as their number has doubled.
class Collisions {
  public:
    void add(std::int64_t one, std::int64_t other) {
        if (one == other) return;
        pairs_.push_back({std::min(one, other), std::max(one, other)});
        if (pairs_.size() < limit_) return;
        compact();
        limit_ = 2 * pairs_.size() + 4096;
    }
    const std::vector<Pair>& compact() {
        std::sort(pairs_.begin(), pairs_.end());
        pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
        return pairs_;
    }

  private:
    std::vector<Pair> pairs_;
    std::size_t limit_ = 4096;
};

// What a rank has still to look at: edges of one of its vertices, which is in `component`.
struct Visit {
    std::int64_t edge;
    std::int64_t end;
    std::int64_t component;
};

struct Search {
    const Graph& graph;
    Collisions collisions;
    std::vector<Visit> work;
    std::vector<std::int64_t> known;    // the components of this rank's vertices that it has visited; they never change
    std::vector<std::int64_t> reached;  // by vertex, for those of other ranks: the component that came there first
    std::int64_t next = 0;              // all vertices before it are visited

    explicit Search(const Graph& g)
        : graph(g),
          known(static_cast<std::size_t>(g.local), kNone),
          reached(static_cast<std::size_t>(g.vertices), kNone) {}
    std::int64_t& known_of(std::int64_t v) { return known[static_cast<std::size_t>(v)]; }
    bool mine(std::int64_t vertex) const { return vertex >= graph.first && vertex < graph.first + graph.local; }
    void visit(std::int64_t v, std::int64_t component) {
        known_of(v) = component;
        work.push_back({graph.at(v), graph.at(v + 1), component});
    }
    // The next local vertex that is not visited, or `local` if there is none.
    std::int64_t next_vertex() {
        while (next < graph.local && known_of(next) != kNone)
            ++next;
        return next;
    }
    // Whether this rank reaches a vertex of another rank for the first time.
    bool is_new(std::int64_t vertex, std::int64_t component) {
        std::int64_t& first = reached[static_cast<std::size_t>(vertex)];
        if (first != kNone) collisions.add(component, first);
        if (first != kNone) return false;
        first = component;
        return true;
    }
    // A local vertex has been reached: colours it if it has no component.
    void reach(std::int64_t v, std::int64_t component) {
        if (known_of(v) == kNone) {
            visit(v, component);
        } else {
            collisions.add(component, known_of(v));
        }
    }
};

// ---- one-sided ------------------------------------------------------------------------------------------------------

class OneSided {
  public:
    OneSided(Search& search, MPI_Win win, int rank, std::size_t limit)
        : s_(search), win_(win), rank_(rank), limit_(limit) {
        asked_.reserve(limit);
    }

    void run(const Session& session) {
        Progress progress(session, "vertices", s_.graph.local);
        MPI_Win_lock_all(0, win_);
        while (collect()) {
            MPI_Win_flush_all(win_);
            // A vertex without a component has this one now: its owner goes on from there.
            for (const Asked& a : asked_)
                if (a.before != kNone) s_.collisions.add(a.component, a.before);
            asked_.clear();
            progress.at(s_.next);
        }
        MPI_Win_unlock_all(win_);
    }

  private:
    struct Asked {
        std::int64_t vertex;
        std::int64_t component;
        std::int64_t before;
    };

    // Asks about as many vertices of other ranks as the batch holds, and starts searches while there is room in it.
    // False when all of this rank's vertices are visited.
    bool collect() {
        while (asked_.size() < limit_) {
            if (!s_.work.empty()) {
                expand();
                continue;
            }
            const std::int64_t v = s_.next_vertex();
            if (v == s_.graph.local) break;
            colour(v, s_.graph.first + v);  // a component of its own number, if no other rank's search has coloured it
        }
        return !asked_.empty() || s_.next_vertex() < s_.graph.local;
    }

    // Visits a vertex of this rank, which other ranks may have coloured. Its component.
    std::int64_t colour(std::int64_t v, std::int64_t component) {
        std::int64_t before = kNone;
        MPI_Compare_and_swap(&component, &kNone, &before, MPI_INT64_T, rank_, v, win_);
        MPI_Win_flush(rank_, win_);
        if (before != kNone) component = before;
        s_.visit(v, component);
        return component;
    }

    void expand() {
        Visit visit = s_.work.back();
        s_.work.pop_back();
        while (visit.edge < visit.end && asked_.size() < limit_) {
            const std::int64_t vertex = s_.graph.to(visit.edge++);
            if (s_.mine(vertex)) {
                const std::int64_t v = vertex - s_.graph.first;
                const std::int64_t found = s_.known_of(v) != kNone ? s_.known_of(v) : colour(v, visit.component);
                s_.collisions.add(visit.component, found);
            } else if (s_.is_new(vertex, visit.component)) {
                asked_.push_back({vertex, visit.component, kNone});
                Asked& a = asked_.back();  // stays where it is: the room is reserved
                MPI_Compare_and_swap(&a.component, &kNone, &a.before, MPI_INT64_T, s_.graph.owner(vertex),
                                     s_.graph.index(vertex), win_);
            }
        }
        if (visit.edge < visit.end) s_.work.push_back(visit);
    }

    Search& s_;
    MPI_Win win_;
    int rank_;
    std::size_t limit_;
    std::vector<Asked> asked_;
};

// ---- message passing ------------------------------------------------------------------------------------------------

struct Reached {
    std::int64_t vertex;
    std::int64_t component;
};

void by_messages(const Session& session, Search& s, std::int64_t bundle) {
    Bundles<Reached> bundles(session.ranks);
    Progress progress(session, "vertices", s.graph.local);
    std::int64_t busy = 1;
    while (busy != 0) {
        // New searches fill the bundle when those under way have nothing left to do here.
        for (bool local = true; local;) {
            while (!s.work.empty()) {
                const Visit visit = s.work.back();
                s.work.pop_back();
                for (std::int64_t e = visit.edge; e < visit.end; ++e) {
                    const std::int64_t vertex = s.graph.to(e);
                    if (s.mine(vertex))
                        s.reach(vertex - s.graph.first, visit.component);
                    else if (s.is_new(vertex, visit.component))
                        bundles.add(s.graph.owner(vertex), {vertex, visit.component});
                }
            }
            const std::int64_t v = s.next_vertex();
            local = v < s.graph.local && bundles.size() < bundle;
            if (local) s.visit(v, s.graph.first + v);
        }
        for (const Reached& r : bundles.exchange())
            s.reach(r.vertex - s.graph.first, r.component);
        busy = session.sum(static_cast<std::int64_t>(s.work.size()) + s.graph.local - s.next_vertex());
        progress.at(s.next);
    }
}

// ---- the answer -----------------------------------------------------------------------------------------------------

template <class Item>
std::vector<Item> gather_all(const Session& session, const Item* items, std::size_t count) {
    std::vector<int> bytes(static_cast<std::size_t>(session.ranks));
    std::vector<int> at(bytes.size());
    const int own = static_cast<int>(count * sizeof(Item));
    MPI_Allgather(&own, 1, MPI_INT, bytes.data(), 1, MPI_INT, MPI_COMM_WORLD);
    for (std::size_t r = 1; r < at.size(); ++r)
        at[r] = at[r - 1] + bytes[r - 1];
    std::vector<Item> all(static_cast<std::size_t>(at.back() + bytes.back()) / sizeof(Item));
    MPI_Allgatherv(items, own, MPI_BYTE, all.data(), bytes.data(), at.data(), MPI_BYTE, MPI_COMM_WORLD);
    return all;
}

std::size_t root(std::vector<std::size_t>& parent, std::size_t x) {
    while (parent[x] != x)
        x = parent[x] = parent[parent[x]];
    return x;
}

// Every rank resolves the collisions of all ranks, then names its own vertices anew.
void resolve(const Session& session, Search& s) {
    const std::vector<Pair>& own = s.collisions.compact();
    const std::vector<Pair> pairs = gather_all(session, own.data(), own.size());
    std::vector<std::int64_t> names;
    for (const Pair& p : pairs) {
        names.push_back(p.low);
        names.push_back(p.high);
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    const auto place = [&](std::int64_t name) {
        return static_cast<std::size_t>(std::lower_bound(names.begin(), names.end(), name) - names.begin());
    };
    std::vector<std::size_t> parent(names.size());
    for (std::size_t i = 0; i < parent.size(); ++i)
        parent[i] = i;
    for (const Pair& p : pairs) {
        const std::size_t one = root(parent, place(p.low));
        const std::size_t other = root(parent, place(p.high));
        parent[std::max(one, other)] = std::min(one, other);
    }
    for (std::int64_t& name : s.known) {
        const std::size_t i = place(name);
        if (i < names.size() && names[i] == name) name = names[root(parent, i)];
    }
}

// Whether `found` divides the vertices as a sequential search does: the names may differ, the sets may not.
bool same_sets(const Graph& graph, const std::vector<std::int64_t>& found) {
    std::vector<char> seen(found.size(), 0);
    std::vector<char> used(found.size(), 0);
    std::vector<std::int64_t> work;
    for (std::int64_t start = 0; start < graph.vertices; ++start) {
        if (seen[static_cast<std::size_t>(start)] != 0) continue;
        const std::int64_t name = found[static_cast<std::size_t>(start)];
        if (name < 0 || name >= graph.vertices || used[static_cast<std::size_t>(name)] != 0) return false;
        used[static_cast<std::size_t>(name)] = 1;
        seen[static_cast<std::size_t>(start)] = 1;
        work.push_back(start);
        while (!work.empty()) {
            const std::int64_t v = work.back();
            work.pop_back();
            if (found[static_cast<std::size_t>(v)] != name) return false;
            for (std::int64_t e = graph.at(v); e < graph.at(v + 1); ++e) {
                char& met = seen[static_cast<std::size_t>(graph.to(e))];
                if (met == 0) work.push_back(graph.to(e));
                met = 1;
            }
        }
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    Session session(&argc, &argv);
    Settings set;
    Options options("connected components by parallel search");
    set.source.add_to(options);
    options.number("batch", set.batch, 1, 1L << 24, "vertices of other ranks under way per rank");
    options.flag("messages", set.messages, "the message-passing twin");
    options.flag("unchecked", set.unchecked, "without the sequential check");
    const int status = options.parse(argc, argv, session);
    if (status != Options::kGoOn) return status;
    const example::EdgeList list = example::edges_of(set.source, session.rank, session.ranks);
    if (!session.all(list.error.empty())) {
        if (session.first()) std::fprintf(stderr, "components: %s\n", list.error.c_str());
        return example::kUsage;
    }
    const Graph graph = example::distribute(session, list, example::Direction::Both);

    std::int64_t* colours = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_allocate(static_cast<MPI_Aint>(sizeof(std::int64_t)) * graph.per_rank, sizeof(std::int64_t), MPI_INFO_NULL,
                     MPI_COMM_WORLD, static_cast<void*>(&colours), &win);
    {
        const example::OwnMemory own(session, win);
        std::fill(colours, colours + graph.local, kNone);
    }

    Search search(graph);
    const double begin = Session::start_together();
    if (set.messages) {
        by_messages(session, search, set.batch);
    } else {
        OneSided(search, win, session.rank, static_cast<std::size_t>(set.batch)).run(session);
    }
    resolve(session, search);
    const double took = Session::start_together() - begin;

    std::int64_t components = 0;
    bool right = true;
    const std::vector<std::int64_t> all = gather_all(session, search.known.data(), search.known.size());
    std::vector<std::int64_t> names = all;
    std::sort(names.begin(), names.end());
    components = std::unique(names.begin(), names.end()) - names.begin();
    if (!set.unchecked && session.first()) right = same_sets(example::whole(set.source, example::Direction::Both), all);
    right = session.all(right);
    const std::int64_t edges = session.sum(graph.edges()) / 2;
    if (session.first()) {
        std::printf("components ranks=%d mode=%s vertices=%lld edges=%lld components=%lld seconds=%.4f verified=%s\n",
                    session.ranks, set.messages ? "messages" : "compare_and_swap",
                    static_cast<long long>(graph.vertices), static_cast<long long>(edges),
                    static_cast<long long>(components), took, set.unchecked ? "skipped" : example::yes(right));
    }
    MPI_Win_free(&win);
    return right ? example::kRight : example::kWrong;
}
