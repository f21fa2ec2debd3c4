// PageRank: in each step every vertex gives its rank to its neighbours in equal shares. One-sided, --push: one
// MPI_Accumulate of a double per edge; --pull: one MPI_Get per vertex of another rank from which edges arrive. A whole
// step is one fence epoch, however many operations it has: no fences in between keep the number of operations under way
// small. With --messages: shares for vertices of other ranks are bundled by owner and exchanged once per step.
#include <cmath>

#include "graph.h"

using example::Bundles;
using example::Direction;
using example::Graph;
using example::Options;
using example::Session;

namespace {

constexpr double kDamping = 0.85;

struct Settings {
    example::GraphSource source;
    std::string mode = "push";
    long steps = 10;
    long memory = 0;
    bool unchecked = false;
};

// The ranks of this process's vertices. `shared`, in the window, is what the others reach: with push the sums of the
// next step, with pull the shares of this one.
struct Ranks {
    const Graph& out;
    double* shared = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    std::vector<double> rank;
    std::vector<double> share;

    explicit Ranks(const Graph& graph)
        : out(graph),
          rank(static_cast<std::size_t>(graph.local), 1.0 / static_cast<double>(graph.vertices)),
          share(rank.size()) {
        MPI_Win_allocate(static_cast<MPI_Aint>(sizeof(double)) * graph.per_rank, sizeof(double), MPI_INFO_NULL,
                         MPI_COMM_WORLD, static_cast<void*>(&shared), &win);
    }
    Ranks(const Ranks&) = delete;
    Ranks& operator=(const Ranks&) = delete;
    ~Ranks() { MPI_Win_free(&win); }

    // Computes all shares; returns what each vertex has before any arrives. Vertices without edges give to all.
    double begin_step(const Session& session) {
        double stranded = 0;
        for (std::size_t v = 0; v < rank.size(); ++v) {
            const std::int64_t degree = out.degree(static_cast<std::int64_t>(v));
            share[v] = degree > 0 ? kDamping * rank[v] / static_cast<double>(degree) : 0;
            if (degree == 0) stranded += rank[v];
        }
        return (1 - kDamping + kDamping * session.sum(stranded)) / static_cast<double>(out.vertices);
    }
};

void push(const Session& session, Ranks& r) {
    const double base = r.begin_step(session);
    std::fill(r.shared, r.shared + r.out.local, base);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, r.win);
    for (std::int64_t v = 0; v < r.out.local; ++v) {
        const double* share = &r.share[static_cast<std::size_t>(v)];
        for (std::int64_t e = r.out.at(v); e < r.out.at(v + 1); ++e) {
            const std::int64_t to = r.out.to(e);
            MPI_Accumulate(share, 1, MPI_DOUBLE, r.out.owner(to), r.out.index(to), 1, MPI_DOUBLE, MPI_SUM, r.win);
        }
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, r.win);
    std::copy(r.shared, r.shared + r.out.local, r.rank.begin());
}

// The vertices from which edges arrive here: the own ones, then each of other ranks once.
struct Sources {
    const Graph& in;
    std::vector<std::int64_t> others;
    std::vector<std::size_t> place;  // of the source of each edge, in `shares`
    std::vector<double> shares;

    explicit Sources(const Graph& graph) : in(graph), place(static_cast<std::size_t>(in.edges())) {
        const auto own = static_cast<std::size_t>(in.local);
        std::vector<std::size_t> places(static_cast<std::size_t>(in.vertices), 0);
        for (std::int64_t e = 0; e < in.edges(); ++e) {
            const std::int64_t from = in.to(e);
            const bool is_own = from >= in.first && from < in.first + in.local;
            std::size_t& known = places[static_cast<std::size_t>(from)];
            if (!is_own && known == 0) {
                others.push_back(from);
                known = own + others.size();
            }
            place[static_cast<std::size_t>(e)] = is_own ? static_cast<std::size_t>(from - in.first) : known - 1;
        }
        shares.resize(own + others.size());
    }
};

void pull(const Session& session, Ranks& r, Sources& sources) {
    const Graph& in = sources.in;
    const double base = r.begin_step(session);
    std::copy(r.share.begin(), r.share.end(), r.shared);
    double* next = std::copy(r.share.begin(), r.share.end(), sources.shares.data());
    MPI_Win_fence(MPI_MODE_NOPRECEDE, r.win);
    for (const std::int64_t from : sources.others)
        MPI_Get(next++, 1, MPI_DOUBLE, in.owner(from), in.index(from), 1, MPI_DOUBLE, r.win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, r.win);
    for (std::int64_t v = 0; v < in.local; ++v) {
        double sum = base;
        for (std::int64_t e = in.at(v); e < in.at(v + 1); ++e)
            sum += sources.shares[sources.place[static_cast<std::size_t>(e)]];
        r.rank[static_cast<std::size_t>(v)] = sum;
    }
}

struct Share {
    std::int64_t index;
    double value;
};

void by_messages(const Session& session, Ranks& r, Bundles<Share>& bundles) {
    const double base = r.begin_step(session);
    std::fill(r.rank.begin(), r.rank.end(), base);
    for (std::int64_t v = 0; v < r.out.local; ++v) {
        const double share = r.share[static_cast<std::size_t>(v)];
        for (std::int64_t e = r.out.at(v); e < r.out.at(v + 1); ++e) {
            const std::int64_t to = r.out.to(e);
            if (r.out.owner(to) == session.rank)
                r.rank[static_cast<std::size_t>(r.out.index(to))] += share;
            else
                bundles.add(r.out.owner(to), {r.out.index(to), share});
        }
    }
    for (const Share& s : bundles.exchange())
        r.rank[static_cast<std::size_t>(s.index)] += s.value;
}

// The same steps on one process; the largest relative difference. The order of the sums differs, and with it the last
// bits.
double difference(const Graph& graph, long steps, const std::vector<double>& found) {
    const auto vertices = static_cast<double>(graph.vertices);
    std::vector<double> rank(found.size(), 1.0 / vertices);
    for (long step = 0; step < steps; ++step) {
        double stranded = 0;
        std::vector<double> next(rank.size(), 0);
        for (std::int64_t v = 0; v < graph.vertices; ++v) {
            const double own = rank[static_cast<std::size_t>(v)];
            if (graph.degree(v) == 0) stranded += own;
            for (std::int64_t e = graph.at(v); e < graph.at(v + 1); ++e)
                next[static_cast<std::size_t>(graph.to(e))] += own / static_cast<double>(graph.degree(v));
        }
        for (double& x : next)
            x = (1 - kDamping + kDamping * stranded) / vertices + kDamping * x;
        rank.swap(next);
    }
    double most = 0;
    for (std::size_t v = 0; v < rank.size(); ++v)
        most = std::max(most, std::fabs(found[v] - rank[v]) / rank[v]);
    return most;
}

// All vertices' ranks on rank 0; every rank's block but the last ones' is full.
std::vector<double> gather(const Session& session, const Ranks& r) {
    std::vector<double> padded(r.rank);
    padded.resize(static_cast<std::size_t>(r.out.per_rank));
    std::vector<double> all(session.first() ? padded.size() * static_cast<std::size_t>(session.ranks) : 0);
    const int count = static_cast<int>(padded.size());
    MPI_Gather(padded.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    all.resize(session.first() ? static_cast<std::size_t>(r.out.vertices) : 0);
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    Session session(&argc, &argv);
    Settings set;
    Options options("PageRank by accumulate, by get or by messages");
    set.source.add_to(options);
    options.word("mode", set.mode, "push|pull|messages", "accumulate, get, or the message-passing twin");
    options.number("steps", set.steps, 1, 100000, "steps");
    options.number("memory", set.memory, 0, 1L << 40, "MiB by which memory may rise in the steps; 0: any");
    options.flag("unchecked", set.unchecked, "without the sequential check");
    const int status = options.parse(argc, argv, session);
    if (status != Options::kGoOn) return status;
    const example::EdgeList list = example::edges_of(set.source, session.rank, session.ranks);
    if (!session.all(list.error.empty())) {
        if (session.first()) std::fprintf(stderr, "pagerank: %s\n", list.error.c_str());
        return example::kUsage;
    }
    const Graph out = example::distribute(session, list, Direction::Out);
    Graph in(list.vertices, session.rank, session.ranks);
    if (set.mode == "pull") in = example::distribute(session, list, Direction::In);
    Sources sources(in);
    Bundles<Share> bundles(session.ranks);
    Ranks ranks(out);

    const example::PeakMemory memory;
    example::Progress progress(session, "steps", set.steps);
    const double begin = Session::start_together();
    for (long step = 0; step < set.steps; ++step) {
        if (set.mode == "push") push(session, ranks);
        if (set.mode == "pull") pull(session, ranks, sources);
        if (set.mode == "messages") by_messages(session, ranks, bundles);
        progress.at(step);
    }
    const double took = Session::start_together() - begin;
    const std::int64_t risen = session.most(memory.risen_kib());

    const std::vector<double> all = gather(session, ranks);
    const std::int64_t edges = session.sum(out.edges());
    double off = 0;
    if (!set.unchecked && session.first()) off = difference(example::whole(set.source, Direction::Out), set.steps, all);
    const bool right = session.all(off < 1e-9 && (set.memory == 0 || risen <= set.memory * 1024));
    if (session.first()) {
        std::printf(
            "pagerank ranks=%d mode=%s vertices=%lld edges=%lld steps=%ld seconds=%.4f medges=%.3f "
            "memory_mib=%.1f verified=%s\n",
            session.ranks, set.mode.c_str(), static_cast<long long>(out.vertices), static_cast<long long>(edges),
            set.steps, took, static_cast<double>(edges) * static_cast<double>(set.steps) / took * 1e-6,
            static_cast<double>(risen) / 1024, set.unchecked ? "skipped" : example::yes(right));
    }
    return right ? example::kRight : example::kWrong;
}
