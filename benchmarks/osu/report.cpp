// Prints the table or the JSON object (see report.h). All names in the object are literals of the programs, so nothing
// needs quoting.
#include "report.h"

#include <cstdio>
#include <cstring>

namespace osu {
namespace {

constexpr int kLabelWidth = 10;
constexpr int kFigureWidth = 20;

bool takes(const Program& program, char letter) {
    return std::strchr(program.takes, letter) != nullptr;
}

const char* call_of(Creation creation) {
    switch (creation) {
        case Creation::create:
            return "MPI_Win_create";
        case Creation::allocate:
            return "MPI_Win_allocate";
        case Creation::dynamic:
            return "MPI_Win_create_dynamic";
    }
    return "?";
}

const char* call_of(Sync sync) {
    switch (sync) {
        case Sync::lock:
            return "MPI_Win_lock/unlock";
        case Sync::flush:
            return "MPI_Win_flush";
        case Sync::flush_local:
            return "MPI_Win_flush_local";
        case Sync::lock_all:
            return "MPI_Win_lock_all/unlock_all";
        case Sync::pscw:
            return "MPI_Win_post/start/complete/wait";
        case Sync::fence:
            return "MPI_Win_fence";
    }
    return "?";
}

std::string member(const std::string& key, double value) {
    char text[64];
    std::snprintf(text, sizeof text, "\"%s\": %.6g", key.c_str(), value);
    return text;
}

}  // namespace

Report::Report(const Program& program, const Options& options, int ranks, bool prints, Column label,
               std::vector<Column> columns)
    : program_(program),
      options_(options),
      ranks_(ranks),
      prints_(prints),
      label_(label),
      columns_(std::move(columns)) {
    if (prints_ && !options_.json) table_head();
}

void Report::table_head() const {
    std::printf("# %s: %s\n", program_.name, program_.title);
    if (takes(program_, 'w')) std::printf("# Window creation: %s\n", call_of(options_.creation));
    if (takes(program_, 's')) std::printf("# Synchronization: %s\n", call_of(options_.sync));
    if (takes(program_, 'o')) std::printf("# Operation: %s\n", name_of(options_.kind));
    if (takes(program_, 't')) std::printf("# Target computes: %.0f ms at a time\n", options_.compute_ms);
    std::printf("# %-*s", kLabelWidth - 2, label_.heading);
    for (const Column& column : columns_)
        std::printf("%*s", kFigureWidth, column.heading);
    if (options_.validate) std::printf("%*s", kFigureWidth, "Validation");
    std::printf("\n");
    std::fflush(stdout);
}

void Report::row(std::size_t label, const std::vector<Summary>& figures, bool valid) {
    all_valid_ = all_valid_ && valid;
    if (!prints_) return;
    if (options_.json) {
        json_row(label, figures, valid);
    } else {
        table_row(label, figures, valid);
    }
}

void Report::table_row(std::size_t label, const std::vector<Summary>& figures, bool valid) const {
    std::printf("%-*zu", kLabelWidth, label);
    for (std::size_t i = 0; i < columns_.size(); ++i)
        std::printf("%*.*f", kFigureWidth, columns_[i].digits, figures[i].median);
    if (options_.validate) std::printf("%*s", kFigureWidth, valid ? "Pass" : "Fail");
    std::printf("\n");
    std::fflush(stdout);
}

void Report::json_row(std::size_t label, const std::vector<Summary>& figures, bool valid) {
    if (!json_rows_.empty()) json_rows_ += ", ";
    json_rows_ += std::string("{\"") + label_.key + "\": " + std::to_string(label);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        const std::string key = columns_[i].key;
        json_rows_ += ", " + member(key, figures[i].median) + ", " + member(key + "_q1", figures[i].low) + ", " +
                      member(key + "_q3", figures[i].high);
    }
    if (options_.validate) json_rows_ += std::string(", \"valid\": ") + (valid ? "true" : "false");
    json_rows_ += "}";
}

bool Report::finish() {
    if (prints_ && options_.json) {
        std::printf("{\"benchmark\": \"%s\", \"ranks\": %d", program_.name, ranks_);
        if (takes(program_, 'w')) std::printf(", \"window\": \"%s\"", name_of(options_.creation));
        if (takes(program_, 's')) std::printf(", \"sync\": \"%s\"", name_of(options_.sync));
        if (takes(program_, 'o')) std::printf(", \"operation\": \"%s\"", name_of(options_.kind));
        if (takes(program_, 't')) std::printf(", \"compute_ms\": %.0f", options_.compute_ms);
        std::printf(", \"batches\": %d, \"validated\": %s, \"results\": [%s]}\n", kBatches,
                    options_.validate ? "true" : "false", json_rows_.c_str());
        std::fflush(stdout);
    }
    return all_valid_;
}

}  // namespace osu
