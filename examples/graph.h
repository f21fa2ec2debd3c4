// Graphs for components.cpp and pagerank.cpp: Erdős-Rényi and R-MAT generators, readers of Matrix Market files and of
// edge lists, and their distribution over the ranks in blocks of vertices, as compressed rows.
#pragma once

#include <algorithm>
#include <utility>

#include "example.h"

namespace example {

struct Edge {
    std::int64_t from;
    std::int64_t to;
    bool operator<(const Edge& other) const { return from != other.from ? from < other.from : to < other.to; }
    bool operator==(const Edge& other) const { return from == other.from && to == other.to; }
};

/// Which graph: a generator's, or a file's.
struct GraphSource {
    std::string kind = "nice";
    std::string file;
    long scale = 12;
    long degree = 8;
    long seed = 1;

    void add_to(Options& options) {
        options.word("graph", kind, "er|nice|nasty", "Erdős-Rényi, or R-MAT with mild or strong skew");
        options.number("scale", scale, 1, 34, "log2 of the number of vertices");
        options.number("degree", degree, 1, 1000, "edges per vertex, before duplicates and loops are dropped");
        options.number("seed", seed, 0, 1L << 40, "another graph of the same kind");
        options.word("file", file, nullptr, "a Matrix Market file (.mtx) or a list of edges instead");
    }
};

struct EdgeList {
    std::int64_t vertices = 0;
    std::vector<Edge> edges;
    std::string error;  // empty, or why there are no edges
};

/// A random bijection of [0, 2^bits): R-MAT's vertices of high degree have small numbers, and one rank would own them.
inline std::int64_t permute(std::int64_t vertex, long bits, std::uint64_t seed) {
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    auto x = static_cast<std::uint64_t>(vertex);
    const long half = bits / 2 + 1;
    for (std::uint64_t round = 0; round < 3; ++round) {
        x = (x * (2 * mix(seed + round) + 1)) & mask;  // an odd factor has an inverse
        x ^= x >> half;
        x = (x + mix(seed ^ round)) & mask;
    }
    return static_cast<std::int64_t>(x);
}

/// Edge `i` of a graph is a pure function of its number, so that every rank can generate any part.
inline Edge generate(const GraphSource& source, std::int64_t i) {
    // Quadrants: both ends in the lower half; from lower, to upper; from upper, to lower; both in the upper half.
    constexpr double kEven[] = {0.25, 0.25, 0.25};
    constexpr double kNice[] = {0.45, 0.15, 0.15};
    constexpr double kNasty[] = {0.57, 0.19, 0.19};
    const double* share = source.kind == "er" ? kEven : source.kind == "nice" ? kNice : kNasty;
    const auto seed = mix(static_cast<std::uint64_t>(source.seed));
    std::uint64_t random = seed ^ mix(static_cast<std::uint64_t>(i));
    Edge edge{0, 0};
    for (long bit = 0; bit < source.scale; ++bit) {
        random = mix(random);
        const double x = static_cast<double>(random >> 11) * 0x1p-53;
        const bool upper = x >= share[0] + share[1];
        edge.from = edge.from * 2 + (upper ? 1 : 0);
        const bool right = upper ? x >= share[0] + share[1] + share[2] : x >= share[0];
        edge.to = edge.to * 2 + (right ? 1 : 0);
    }
    return {permute(edge.from, source.scale, seed), permute(edge.to, source.scale, seed)};
}

/// Reads a file whose lines are `from to [anything]`: Matrix Market coordinates (numbered from 1; symmetric ones are
/// mirrored) if it starts with %%MatrixMarket, else an edge list (numbered from 0; # and % start comments).
inline EdgeList read_file(const std::string& name) {
    EdgeList list;
    std::FILE* file = std::fopen(name.c_str(), "r");
    if (file == nullptr) {
        list.error = name + ": " + std::strerror(errno);
        return list;
    }
    char line[1024];
    long number = 0;
    bool market = false;
    bool symmetric = false;
    bool sized = false;
    while (list.error.empty() && std::fgets(line, sizeof line, file) != nullptr) {
        ++number;
        if (number == 1 && std::strncmp(line, "%%MatrixMarket", 14) == 0) {
            market = true;
            symmetric = std::strstr(line, "symmetric") != nullptr;
            if (std::strstr(line, "coordinate") == nullptr) list.error = name + ":1: not a matrix of coordinates";
            continue;
        }
        const char* text = line + std::strspn(line, " \t\r\n");
        if (*text == '#' || *text == '%' || *text == '\0') continue;
        char* end = nullptr;
        const long long from = std::strtoll(text, &end, 10);
        char* last = nullptr;
        const long long to = std::strtoll(end, &last, 10);
        const std::int64_t base = market ? 1 : 0;
        if (end == text || last == end || from < base || to < base ||
            (market && sized && (from > list.vertices || to > list.vertices))) {
            list.error = name + ":" + std::to_string(number) + ": not two vertices";
        } else if (market && !sized) {
            list.vertices = std::max(from, to);
            sized = true;
        } else {
            list.edges.push_back({from - base, to - base});
            if (symmetric && from != to) list.edges.push_back({to - base, from - base});
            if (!market) list.vertices = std::max<std::int64_t>(list.vertices, std::max(from, to) + 1);
        }
    }
    std::fclose(file);
    if (list.error.empty() && list.vertices == 0) list.error = name + ": no vertices";
    return list;
}

/// Part `part` of `parts` of the edges.
inline EdgeList edges_of(const GraphSource& source, std::int64_t part, std::int64_t parts) {
    EdgeList list;
    if (source.file.empty()) {
        list.vertices = std::int64_t{1} << source.scale;
        const std::int64_t all = list.vertices * source.degree;
        list.edges.reserve(static_cast<std::size_t>(all / parts + 1));
        for (std::int64_t i = all * part / parts; i < all * (part + 1) / parts; ++i)
            list.edges.push_back(generate(source, i));
        return list;
    }
    list = read_file(source.file);
    std::vector<Edge> mine;
    for (std::size_t i = static_cast<std::size_t>(part); i < list.edges.size(); i += static_cast<std::size_t>(parts))
        mine.push_back(list.edges[i]);
    list.edges = std::move(mine);
    return list;
}

/// The vertices of one rank and their neighbours: those of local vertex v are neighbour[begin[v]] to neighbour[begin[v
/// + 1] - 1].
struct Graph {
    std::int64_t vertices = 0;  // of all ranks
    std::int64_t per_rank = 1;  // vertex v belongs to rank v / per_rank
    std::int64_t first = 0;     // this rank's first vertex
    std::int64_t local = 0;     // how many it has
    std::vector<std::int64_t> begin;
    std::vector<std::int64_t> neighbour;

    int owner(std::int64_t vertex) const { return static_cast<int>(vertex / per_rank); }
    std::int64_t index(std::int64_t vertex) const { return vertex % per_rank; }
    std::int64_t degree(std::int64_t v) const { return at(v + 1) - at(v); }
    std::int64_t at(std::int64_t v) const { return begin[static_cast<std::size_t>(v)]; }
    std::int64_t edges() const { return static_cast<std::int64_t>(neighbour.size()); }
    std::int64_t to(std::int64_t edge) const { return neighbour[static_cast<std::size_t>(edge)]; }

    Graph(std::int64_t all, int rank, int ranks) : vertices(all), per_rank((all + ranks - 1) / ranks) {
        first = std::min(all, per_rank * rank);
        local = std::min(all, first + per_rank) - first;
    }
    /// Takes the edges that start at its vertices; drops loops and duplicates.
    void fill(std::vector<Edge> edges) {
        std::sort(edges.begin(), edges.end());
        begin.assign(static_cast<std::size_t>(local) + 1, 0);
        for (std::size_t i = 0; i < edges.size(); ++i) {
            if (edges[i].from == edges[i].to || (i > 0 && edges[i] == edges[i - 1])) continue;
            ++begin[static_cast<std::size_t>(edges[i].from - first) + 1];
            neighbour.push_back(edges[i].to);
        }
        for (std::size_t v = 1; v < begin.size(); ++v)
            begin[v] += begin[v - 1];
    }
};

enum class Direction { Out, In, Both };

/// The edges as this graph's rows want them: as they are, turned round, or both.
inline std::vector<Edge> directed(const std::vector<Edge>& edges, Direction direction) {
    std::vector<Edge> rows;
    for (const Edge& e : edges) {
        if (direction != Direction::In) rows.push_back(e);
        if (direction != Direction::Out) rows.push_back({e.to, e.from});
    }
    return rows;
}

/// Sends every edge to the rank that owns its first vertex. Collective.
inline Graph distribute(const Session& session, const EdgeList& list, Direction direction) {
    Graph graph(list.vertices, session.rank, session.ranks);
    Bundles<Edge> bundles(session.ranks);
    for (const Edge& e : directed(list.edges, direction))
        bundles.add(graph.owner(e.from), e);
    graph.fill(bundles.exchange());
    return graph;
}

/// The whole graph on one rank, for the sequential check.
inline Graph whole(const GraphSource& source, Direction direction) {
    const EdgeList list = edges_of(source, 0, 1);
    Graph graph(list.vertices, 0, 1);
    graph.fill(directed(list.edges, direction));
    return graph;
}

}  // namespace example
