// The measures of net_raw (see raw_measures.h).
#include "raw_measures.h"

#include "plan.h"

namespace bench {
namespace {

constexpr std::uint64_t kSeed = 20220;
constexpr std::size_t kOutstanding = 128;

void flush(Process& p) {
    p.endpoint().finish();
}

void room_for_one(Process& p) {
    while (p.endpoint().outstanding() >= kOutstanding)
        p.endpoint().poll();
}

std::vector<Raw> word_streams() {
    const std::vector<std::size_t> offsets = stream_offsets(kSeed);
    Raw put{"put8_stream", false, kPerFlush};
    put.turn = [offsets](Process& p, std::uint64_t lap) {
        for (std::size_t i = 0; i < kPerFlush; ++i) {
            p.set_word(kMine + 8 * i, stamp(i, lap));
            room_for_one(p);
            p.endpoint().write(kMine + 8 * i, offsets[i], 8);
        }
        flush(p);
    };
    put.target_right = [offsets](const Process& p, std::uint64_t laps) {
        bool right = true;
        for (std::size_t i = 0; i < kPerFlush; ++i)
            right = right && p.word(offsets[i]) == stamp(i, laps - 1);
        return right;
    };
    Raw acc{"acc8_stream", true, kPerFlush};
    acc.turn = [offsets](Process& p, std::uint64_t) {
        p.set_word(kOperand, 1);
        for (const std::size_t at : offsets) {
            room_for_one(p);
            p.endpoint().add(kOperand, at);
        }
        flush(p);
    };
    acc.target_right = [offsets](const Process& p, std::uint64_t laps) {
        bool right = true;
        for (const std::size_t at : offsets)
            right = right && p.word(at) == laps;
        return right;
    };
    return {put, acc};
}

void fill(Process& p, std::size_t at, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes / 8; ++i)
        p.set_word(at + 8 * i, block_word(i));
}

// The first word of each block of a put carries its stamp.
bool filled(const Process& p, std::size_t at, std::size_t bytes, std::size_t block, bool stamped, std::uint64_t laps) {
    for (std::size_t i = 0; i < bytes / 8; ++i) {
        const bool first = i % (block / 8) == 0;
        const std::uint64_t expected = stamped && first ? stamp(8 * i / block, laps - 1) : block_word(i);
        if (p.word(at + 8 * i) != expected) return false;
    }
    return true;
}

Raw block_put(const std::string& name, std::size_t block, std::size_t blocks) {
    Raw put{name, false, blocks};
    put.turn = [block, blocks](Process& p, std::uint64_t lap) {
        if (lap == 0) fill(p, kMine, block * blocks);
        for (std::size_t b = 0; b < blocks; ++b) {
            p.set_word(kMine + b * block, stamp(b, lap));
            p.endpoint().write(kMine + b * block, b * block, block);
        }
        flush(p);
    };
    put.target_right = [block, blocks](const Process& p, std::uint64_t laps) {
        return filled(p, 0, block * blocks, block, true, laps);
    };
    return put;
}

Raw block_get(const std::string& name, std::size_t block, std::size_t blocks) {
    Raw get{name, false, blocks};
    get.prepare = [block, blocks](Process& p) { fill(p, 0, block * blocks); };
    get.turn = [block, blocks](Process& p, std::uint64_t) {
        for (std::size_t b = 0; b < blocks; ++b)
            p.endpoint().read(kMine + b * block, b * block, block);
        flush(p);
    };
    get.target_right = [](const Process&, std::uint64_t) { return true; };
    get.origin_right = [block, blocks](const Process& p, std::uint64_t laps) {
        return filled(p, kMine, block * blocks, block, false, laps);
    };
    return get;
}

Raw block_add(const std::string& name, std::size_t bytes) {
    Raw add{name, true};
    const std::size_t words = bytes / 8;
    add.turn = [words](Process& p, std::uint64_t lap) {
        for (std::size_t i = 0; lap == 0 && i < words; ++i)
            p.set_word(kMine + 8 * i, i + 1);
        p.endpoint().add(kMine, 0, words);
        flush(p);
    };
    add.target_right = [words](const Process& p, std::uint64_t laps) {
        bool right = true;
        for (std::size_t i = 0; i < words; ++i)
            right = right && p.word(8 * i) == laps * (i + 1);
        return right;
    };
    return add;
}

// Each process sends a message and waits for the other's, as in a barrier of two. The target sends its next one as soon
// as it has the origin's, so at the end one more is under way to the origin.
Raw exchange(std::size_t bytes) {
    Raw exchange{"exchange." + std::to_string(bytes)};
    struct Counts {
        std::uint64_t before = 0;
        std::uint64_t sent = 0;
    };
    const auto counts = std::make_shared<Counts>();
    exchange.prepare = [counts](Process& p) {
        p.endpoint().expect(kMessage, kLargestMessage);
        *counts = {p.endpoint().received(), 0};
    };
    exchange.answer = [counts, bytes](Process& p) {
        if (p.endpoint().received() - counts->before < counts->sent) return;
        p.set_word(kMine, stamp(0, counts->sent));
        p.endpoint().send(kMine, bytes);
        ++counts->sent;
    };
    exchange.turn = [counts, bytes](Process& p, std::uint64_t lap) {
        p.endpoint().expect(kMessage, kLargestMessage);
        if (lap == 0) counts->before = p.endpoint().received();
        p.set_word(kMine, stamp(0, lap));
        p.endpoint().send(kMine, bytes);
        while (p.endpoint().received() - counts->before <= lap)
            p.endpoint().poll();
    };
    exchange.target_right = [](const Process& p, std::uint64_t laps) { return p.word(kMessage) == stamp(0, laps - 1); };
    exchange.finish = [counts, answer = exchange.answer](Process& p, std::uint64_t laps) {
        const std::uint64_t last = counts->before + laps + (p.origin() ? 1 : 0);
        while (p.endpoint().received() < last)
            p.endpoint().poll();
        if (!p.origin()) answer(p);
    };
    exchange.origin_right = [](const Process& p, std::uint64_t laps) { return p.word(kMessage) == stamp(0, laps); };
    return exchange;
}

// A message and its answer; the time is that of one of them.
Raw message(std::size_t bytes) {
    Raw message{"message." + std::to_string(bytes), false, 2};
    const auto answered = std::make_shared<std::uint64_t>(0);
    message.prepare = [answered](Process& p) {
        p.endpoint().expect(kMessage, kLargestMessage);
        *answered = p.endpoint().received();
    };
    message.answer = [answered, bytes](Process& p) {
        for (; *answered < p.endpoint().received(); ++*answered) {
            p.set_word(0, p.word(kMessage));
            p.endpoint().send(0, bytes);
        }
    };
    message.turn = [bytes](Process& p, std::uint64_t lap) {
        p.endpoint().expect(kMessage, kLargestMessage);
        const std::uint64_t before = p.endpoint().received();
        p.set_word(kMine, stamp(0, lap));
        p.endpoint().send(kMine, bytes);
        while (p.endpoint().received() == before)
            p.endpoint().poll();
        flush(p);
    };
    message.target_right = [](const Process& p, std::uint64_t laps) { return p.word(0) == stamp(0, laps - 1); };
    message.origin_right = [](const Process& p, std::uint64_t laps) { return p.word(kMessage) == stamp(0, laps - 1); };
    return message;
}

}  // namespace

std::vector<Raw> small_measures() {
    const auto counted = [](const Process& p, std::uint64_t laps) { return p.word(0) == laps; };
    const auto fetched = [](const Process& p, std::uint64_t laps) { return laps == 0 || p.word(kResult) == laps - 1; };
    std::vector<Raw> list;
    Raw put{"put8"};
    put.turn = [](Process& p, std::uint64_t lap) {
        p.set_word(kMine, stamp(0, lap));
        p.endpoint().write(kMine, 0, 8);
        flush(p);
    };
    put.target_right = [](const Process& p, std::uint64_t laps) { return p.word(0) == stamp(0, laps - 1); };
    list.push_back(put);

    Raw get{"get8"};
    get.turn = [](Process& p, std::uint64_t) {
        p.endpoint().read(kResult, 0, 8);
        flush(p);
    };
    get.prepare = [](Process& p) { p.set_word(0, stamp(0, 0)); };
    get.target_right = [](const Process& p, std::uint64_t) { return p.word(0) == stamp(0, 0); };
    get.origin_right = [](const Process& p, std::uint64_t) { return p.word(kResult) == stamp(0, 0); };
    list.push_back(get);

    Raw fop{"fop", true};
    fop.turn = [](Process& p, std::uint64_t) {
        p.set_word(kOperand, 1);
        p.endpoint().fetch_add(kOperand, kResult, 0);
        flush(p);
    };
    fop.target_right = counted;
    fop.origin_right = fetched;
    list.push_back(fop);

    Raw cas{"cas", true};
    cas.turn = [](Process& p, std::uint64_t lap) {
        p.set_word(kOperand, lap + 1);
        p.set_word(kCompare, lap);
        p.endpoint().compare_swap(kOperand, kCompare, kResult, 0);
        flush(p);
    };
    cas.target_right = counted;
    cas.origin_right = fetched;
    list.push_back(cas);

    Raw acc{"acc8", true};
    acc.turn = [](Process& p, std::uint64_t) {
        p.set_word(kOperand, 1);
        p.endpoint().add(kOperand, 0);
        flush(p);
    };
    acc.target_right = counted;
    list.push_back(acc);
    return list;
}

std::vector<Raw> polling_measures() {
    std::vector<Raw> list = small_measures();
    for (const Raw& stream : word_streams())
        list.push_back(stream);
    list.push_back(block_put("put64k_stream", kBlockBytes, kBlocksPerFlush));
    list.push_back(block_get("get64k_stream", kBlockBytes, kBlocksPerFlush));
    list.push_back(block_put("put4m", kLargeBytes, 1));
    list.push_back(block_get("get4m", kLargeBytes, 1));
    return list;
}

std::vector<Raw> curve_measures() {
    constexpr std::size_t kStream = 64;
    std::vector<Raw> list;
    for (std::size_t bytes = 8; bytes <= kLargeBytes; bytes *= 2) {
        const auto named = [bytes](std::string name) { return name.append(1, '.').append(std::to_string(bytes)); };
        list.push_back(block_put(named("put_latency"), bytes, 1));
        list.push_back(block_get(named("get_latency"), bytes, 1));
        const std::size_t blocks = std::min(kStream, kLargeBytes / bytes);
        list.push_back(block_add(named("acc_latency"), bytes));
        if (bytes <= kLargestMessage) list.push_back(message(bytes));
        if (bytes <= kLargestMessage) list.push_back(exchange(bytes));
        list.push_back(block_put(named("put_bw"), bytes, blocks));
        list.push_back(block_get(named("get_bw"), bytes, blocks));
    }
    return list;
}

}  // namespace bench
