// What the fuzzer does with one input: variables of the environment, settings of OSC_DEBUG among them, of known and
// unknown names, with values that nearly fit. A plain model of the option table says the value of each option and which
// names are unknown.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/options.h"
#include "bytes.h"

extern "C" char** environ;

namespace osc::test {

class OptionsInput {
  public:
    /// Null, or what went wrong.
    const char* run(const std::uint8_t* data, std::size_t size) {
        forget();
        Bytes bytes(data, size);
        while (!bytes.done())
            add(bytes);
        std::string list;
        for (const Setting& setting : settings_)
            list += (list.empty() ? "" : ",") + setting.key + (setting.value ? "=" + *setting.value : "");
        if (!list.empty()) variables_["OSC_DEBUG"] = list;
        for (const auto& [name, value] : variables_)
            ::setenv(name.c_str(), value.c_str(), 1);
        compare(texts_of(base::read_values()));
        compare_unknown();
        forget();
        check_distances(Bytes(data, size));
        return wrong_;
    }
    int taken() const { return taken_; }
    int refused() const { return refused_; }
    int unknown() const { return unknown_; }

  private:
    struct Setting {
        std::string key;
        std::optional<std::string> value;
    };

    void check(bool good, const char* what) {
        if (!good && wrong_ == nullptr) wrong_ = what;
    }

    static const std::vector<base::Option>& rows() {
        static const std::vector<base::Option> all = [] {
            std::size_t count = 0;
            const base::Option* const first = base::table(count);
            return std::vector<base::Option>(first, first + count);
        }();
        return all;
    }

    // Variables of libosc that an earlier input, or the user, has left.
    static void forget() {
        std::vector<std::string> names;
        for (char** entry = environ; *entry != nullptr; ++entry)
            if (const std::string text = *entry; text.starts_with("OSC_") && !text.starts_with("OSC_TEST"))
                names.push_back(text.substr(0, text.find('=')));
        for (const std::string& name : names)
            ::unsetenv(name.c_str());
    }

    static std::vector<std::string> split(const std::string& text, char separator) {
        std::vector<std::string> words(1);
        for (const char letter : text) {
            if (letter == separator)
                words.emplace_back();
            else
                words.back() += letter;
        }
        return words;
    }

    void add(Bytes& bytes) {
        const base::Option& option = rows()[static_cast<std::size_t>(bytes(0, static_cast<int>(rows().size()) - 1))];
        if (option.name == std::string("OSC_DEBUG")) return;
        std::string name = option.name;
        if (bytes.chance(1, 8))
            name.insert(static_cast<std::size_t>(bytes(4, static_cast<int>(name.size()) + 3) - 4), "x");
        std::optional<std::string> given = value(bytes, option);
        if (!option.is_debug()) {
            variables_[name] = *given;
            return;
        }
        std::erase(*given, ',');
        if (bytes.chance(1, 8)) given.reset();
        settings_.push_back({name, given});
    }

    static std::string value(Bytes& bytes, const base::Option& option) {
        static const std::vector<std::string> switches = {"1", "0", "true", "FALSE", "Yes", "no", "on", "oFF", "truee"};
        const auto one_of = [&](const std::vector<std::string>& words) {
            return words[static_cast<std::size_t>(bytes(0, static_cast<int>(words.size()) - 1))];
        };
        switch (bytes(0, 5)) {
            case 0:
                return one_of(switches);
            case 1:
                return one_of(split(option.limits, '|'));
            case 2:
                return one_of(split(option.limits, '|')) + ',' + one_of(split(option.limits, '|'));
            case 3:
                return std::to_string(bytes(-300, 2000));
            case 4:
                return std::string(static_cast<std::size_t>(bytes(0, 2)), ' ') + (bytes.chance(1, 2) ? "+" : "") +
                       std::string(static_cast<std::size_t>(bytes(1, 22)), static_cast<char>(bytes('0', '9')));
            default:
                return bytes.text(12);
        }
    }

    // What the table says of a value.
    std::string expected(const base::Option& option) {
        std::string given;
        if (!option.is_debug()) {
            const auto found = variables_.find(option.name);
            if (found != variables_.end()) given = found->second;
        }
        for (const Setting& setting : settings_)
            if (setting.key == option.name && (setting.value || *option.on_off != '\0'))
                given = setting.value.value_or("on");
        if (given.empty()) return option.fallback;
        const std::string text = switched(option, given);
        const bool fits = is_taken(option, text);
        ++(fits ? taken_ : refused_);
        if (!fits) return option.fallback;
        return option.type == base::Type::Int ? std::to_string(std::strtol(text.c_str(), nullptr, 10)) : text;
    }

    static std::string switched(const base::Option& option, const std::string& given) {
        if (*option.on_off == '\0') return given;
        const std::vector<std::string> of = split(option.on_off, '|');
        std::string small = given;
        std::ranges::transform(small, small.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
        if (small == "true" || small == "yes" || small == "on") return of[0];
        if (small == "false" || small == "no" || small == "off" || small == "0") return of[1];
        // 1 is a number where the option takes numbers.
        return small == "1" && option.name != std::string("OSC_HANG_REPORT") ? of[0] : given;
    }

    static bool is_taken(const base::Option& option, const std::string& text) {
        const std::vector<std::string> words = split(option.limits, '|');
        const auto known = [&](const std::string& word) { return std::ranges::find(words, word) != words.end(); };
        std::size_t digits = text.find_first_not_of(" \t\n\v\f\r");
        switch (option.type) {
            case base::Type::Text:
                return true;
            case base::Type::Bool:
                return text == "0" || text == "1";
            case base::Type::Word:
                return known(text);
            case base::Type::List: {
                std::vector<std::string> all = split(text, ',');
                if (all.back().empty()) all.pop_back();  // one comma may end a list
                return std::ranges::all_of(all, known);
            }
            case base::Type::Int:
                break;
        }
        if (digits != text.npos && (text[digits] == '-' || text[digits] == '+')) ++digits;
        if (digits >= text.size() || text.find_first_not_of("0123456789", digits) != text.npos) return false;
        errno = 0;
        const long number = std::strtol(text.c_str(), nullptr, 10);
        return errno == 0 && number >= std::strtol(option.limits, nullptr, 10);
    }

    static std::string text_of(bool value) { return value ? "1" : "0"; }
    static std::string text_of(long value) { return std::to_string(value); }
    static std::string text_of(const std::string& value) { return value; }

    static std::vector<std::string> texts_of(const base::Values& values) {
        std::vector<std::string> texts;
#define OSC_OPTION(id, name, key, type, limits, on_off, fallback, help) texts.push_back(text_of(values.id));
#include "base/options.def"
        return texts;
    }

    void compare(const std::vector<std::string>& found) {
        std::string disabled = "0";
        for (std::size_t i = 0; i < rows().size(); ++i) {
            const std::string name = rows()[i].name;
            std::string wanted = expected(rows()[i]);
            if (name == "OSC_DISABLE") disabled = wanted;
            // A file is found wherever the program goes.
            if ((name == "OSC_STATS" || name == "OSC_TRACE") && disabled == "0" && !wanted.empty() && wanted != "1")
                wanted = std::filesystem::absolute(wanted).string();
            check(found[i] == wanted, "an option has another value than its table says");
        }
    }

    void compare_unknown() {
        std::vector<std::string> wanted;
        const auto has_row = [](auto&& fits) { return std::ranges::any_of(rows(), fits); };
        for (const auto& variable : variables_)
            if (const std::string& name = variable.first;
                name.starts_with("OSC_") && !name.starts_with("OSC_TEST") &&
                !has_row([&](const base::Option& option) { return option.name == name; }))
                wanted.push_back(name);
        for (const Setting& setting : settings_)
            if (!has_row([&](const base::Option& option) {
                    return option.is_debug() && option.name == setting.key && (setting.value || *option.on_off != '\0');
                }))
                wanted.push_back("OSC_DEBUG=" + setting.key + (setting.value ? "=" + *setting.value : ""));
        std::vector<std::string> found;
        for (const base::UnknownOption& unknown : base::unknown_options()) {
            found.push_back(unknown.name);
            check(!unknown.remedy.empty(), "an unknown option has no remedy");
        }
        unknown_ += static_cast<int>(wanted.size());
        std::ranges::sort(wanted);
        std::ranges::sort(found);
        check(found == wanted, "other names than the unknown ones are reported");
    }

    void check_distances(Bytes bytes) {
        const std::string a = bytes.text(12);
        const std::string b = bytes.text(12);
        const std::size_t distance = base::edit_distance(a, b);
        check(distance == base::edit_distance(b, a), "the distance of two words depends on their order");
        check((distance == 0) == (a == b), "the distance of equal words is not 0, or of others is");
        check(distance <= std::max(a.size(), b.size()), "a distance is longer than both words");
        check(distance >= std::max(a.size(), b.size()) - std::min(a.size(), b.size()), "a distance is too short");
    }

    std::map<std::string, std::string> variables_;
    std::vector<Setting> settings_;
    int taken_ = 0;
    int refused_ = 0;
    int unknown_ = 0;
    const char* wrong_ = nullptr;
};

}  // namespace osc::test
