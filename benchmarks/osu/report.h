// What rank 0 prints: a table as the OSU benchmarks have it, line by line, or with --json one object at the end, which
// has the quartiles too.
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "statistics.h"

namespace osu {

struct Column {
    const char* heading;
    const char* key;  // its name in the JSON object
    int digits;
};

class Report {
  public:
    // The first column is what the rows differ by, a whole number (size or ranks).
    Report(const Program& program, const Options& options, int ranks, bool prints, Column label,
           std::vector<Column> columns);

    // Figures in the order of the columns. `valid` counts only where data is validated.
    void row(std::size_t label, const std::vector<Summary>& figures, bool valid);
    // Ends the output. Whether every row was valid.
    bool finish();

  private:
    void table_head() const;
    void table_row(std::size_t label, const std::vector<Summary>& figures, bool valid) const;
    void json_row(std::size_t label, const std::vector<Summary>& figures, bool valid);

    const Program& program_;
    const Options& options_;
    int ranks_;
    bool prints_;
    Column label_;
    std::vector<Column> columns_;
    std::string json_rows_;
    bool all_valid_ = true;
};

}  // namespace osu
