// The header of a model file: which arrays there are and where, and what is not an array.
//
//   8 bytes     length of the header, little-endian                        a safetensors file
//   header      {"__metadata__": {"rankwood": description},                JSON
//                "feature": {"dtype": "I32", "shape": [n], "data_offsets": [begin, end]}, ...}
//   data        the arrays, without gaps
//
// The description is JSON again: format version, number of features, base, names, the model's own metadata, early exit
// (version 2), and a checksum of the arrays (optional). Files of models with sets have version 3 and the arrays of
// sets, with early exit or without. src/rankwood/model/file.py writes such files. What is read here may be anything:
// every error is a std::invalid_argument with a sentence.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/json.hpp"
#include "sums.hpp"

namespace rankwood {

// The arrays of a file, in the order of their checksum.
struct ArrayKind {
  std::string_view name, type;
  std::size_t entry_bytes;
  bool optional;
};
inline constexpr std::array<ArrayKind, 13> kArrays = {{
    {"feature", "I32", 4, false},
    {"threshold", "F64", 8, false},
    {"left", "I32", 4, false},
    {"right", "I32", 4, false},
    {"missing_left", "BOOL", 1, false},
    {"leaf_value", "F64", 8, false},
    {"node_offsets", "I64", 8, false},
    {"tree_weights", "F64", 8, false},
    {"split_gain", "F64", 8, true},
    {"node_count", "I64", 8, true},
    {"leaf_cover", "F64", 8, true},
    {"set_offsets", "I64", 8, true},
    {"set_thresholds", "F64", 8, true},
}};
inline constexpr std::size_t kScoringArrays = 8;  // those that scores depend on come first
inline constexpr std::size_t kSetArrays = 11;     // but for those of sets, which come last

inline constexpr std::int64_t kFormatVersion = 3;  // the highest that is read
inline constexpr std::int64_t kMaxFeatures = std::int64_t{1} << 24;
inline constexpr std::uint64_t kMaxHeader = 100'000'000;  // safetensors' own limit
inline constexpr std::size_t kHeaderStart = 9;            // bytes that tell whether it can be such a file

inline constexpr const char* kNoModelFile =
    "this is not a rankwood model file: rankwood convert makes one of a model of another library";

[[noreturn]] inline void refuse(const std::string& sentence) { throw std::invalid_argument(sentence); }

// Early exit as the file has it; a margin of infinity means that nobody stops there.
struct ExitNumbers {
  std::vector<std::int64_t> checkpoints;
  std::vector<double> margins;
  std::int64_t top = 0;
};

// Where the header ends, in bytes from the beginning of a file of `n_file` bytes that starts with `start`.
inline std::uint64_t header_end(std::string_view start, std::uint64_t n_file) {
  std::uint64_t length = 0;
  for (std::size_t i = std::min<std::size_t>(start.size(), 8); i-- > 0;) {
    length = length << 8 | static_cast<std::uint8_t>(start[i]);
  }
  if (n_file == 0) refuse("the file is empty");
  if (start.size() < kHeaderStart || length > kMaxHeader || start[8] != '{') refuse(kNoModelFile);
  if (length > n_file - 8) refuse("the file is cut off in its header");
  return 8 + length;
}

class ModelHeader {
 public:
  // One array: `length` entries from byte `begin` of the data on.
  struct Place {
    bool there = false;
    std::uint64_t begin = 0, end = 0;
    std::size_t length = 0;
  };

  // `text` is the header without its length, `n_data` the number of bytes behind it.
  ModelHeader(std::string_view text, std::uint64_t n_data) {
    if (!is_utf8(text)) refuse("the file is damaged: the header is not readable JSON: it is not UTF-8");
    const JsonValue whole = JsonScanner(text, "the header", false).whole();
    if (whole.kind != JsonValue::object) refuse("the file is damaged: the header is not a JSON object");
    read_description(find_description(whole));  // before the arrays: they may be somebody else's
    read_places(whole, n_data);
  }

  std::int32_t n_features = 0;
  double base = 0.0;
  std::optional<std::vector<std::string>> feature_names;  // halves of surrogates as text_of gives them
  std::string metadata;                                   // JSON
  std::optional<ExitNumbers> exit;
  std::optional<std::string> checksum;
  std::array<Place, kArrays.size()> places;  // as kArrays

  // Numbers of the arrays that are there, as they stand in the file.
  std::vector<std::size_t> order() const {
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i].there) numbers.push_back(i);
    }
    std::sort(numbers.begin(), numbers.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(places[a].begin, places[a].end) < std::pair(places[b].begin, places[b].end);
    });
    return numbers;
  }

 private:
  // The text of the description, as the header quotes it.
  static std::string find_description(const JsonValue& header) {
    constexpr const char* kNone = "this is a safetensors file, but there is no rankwood model in it";
    std::optional<JsonValue> entries, description;
    for_each_entry(header, [&](const std::string& name, const JsonValue& value) {
      if (name == "__metadata__") set_once(entries, value, name, "the header");
    });
    if (!entries || entries->kind != JsonValue::object) refuse(kNone);
    bool all_strings = true;
    for_each_entry(*entries, [&](const std::string& name, const JsonValue& value) {
      if (name == "rankwood") set_once(description, value, name, "the header");
      all_strings = all_strings && value.kind == JsonValue::string;
    });
    if (!description || description->kind != JsonValue::string) refuse(kNone);
    if (!all_strings) refuse("the file is damaged or cut off: an entry of __metadata__ is not a string");
    return text_of(*description);
  }

  template <class T>
  static void set_once(std::optional<T>& slot, const T& value, std::string_view name, const char* where) {
    if (slot) refuse("the file is damaged: " + std::string(name) + " stands twice in " + where);
    slot = value;
  }

  void read_description(const std::string& text) {
    constexpr const char* kWhat = "the description of the model";
    const JsonValue whole = JsonScanner(text, kWhat, true).whole();
    if (whole.kind != JsonValue::object) refuse(std::string("the file is damaged: ") + kWhat + " is not a JSON object");
    static constexpr std::array<std::string_view, 7> kNames = {
        "format_version", "n_features", "base", "feature_names", "metadata", "exit", "checksum"};
    std::array<std::optional<JsonValue>, kNames.size()> facts;
    std::set<std::string> odd;
    bool more_odd = false;
    const auto note_odd = [&](std::string_view name) {
      odd.insert(one_line(name));
      if (odd.size() > kMaxOdd) odd.erase(std::prev(odd.end())), more_odd = true;
    };
    for_each_entry(whole, [&](const std::string& name, const JsonValue& value) {
      const auto at = static_cast<std::size_t>(std::find(kNames.begin(), kNames.end(), name) - kNames.begin());
      if (at == kNames.size()) {
        note_odd(name);
      } else {
        set_once(facts[at], value, name, kWhat);
      }
    });
    const auto& [version, features, score, names, notes, rule, sum] = facts;
    check_version(version);
    const std::int64_t number = whole_number(*version).value_or(0);
    has_sets_ = number > 2;
    const bool has_exit = has_sets_ ? rule.has_value() : number > 1;
    for (std::size_t i = 0; i + 1 < kNames.size(); ++i) {
      const bool expected = kNames[i] != "exit" || has_exit;
      if (facts[i].has_value() != expected) note_odd(kNames[i]);
    }
    if (!odd.empty()) {
      std::string list;
      for (const std::string& name : odd) list += (list.empty() ? "" : ", ") + name;
      refuse("the file is damaged: missing or unknown in the description of the model: " + list +
             (more_odd ? ", ..." : ""));
    }
    const auto require_kind = [&](bool fine, std::string_view name, const JsonValue& value) {
      if (!fine) refuse("the file is damaged: " + std::string(name) + " is " + shown(value));
    };
    require_kind(features->kind == JsonValue::integer, "n_features", *features);
    require_kind(any_number(*score).has_value(), "base", *score);
    require_kind(names->kind == JsonValue::null || names->kind == JsonValue::array, "feature_names", *names);
    require_kind(notes->kind == JsonValue::object, "metadata", *notes);
    if (has_exit) read_exit(*rule);
    const std::optional<std::int64_t> n = whole_number(*features);
    if (!n || *n < 0 || *n > kMaxFeatures) {
      refuse("n_features must lie between 0 and " + std::to_string(kMaxFeatures) + ", got " + shown(*features));
    }
    n_features = static_cast<std::int32_t>(*n);
    base = *any_number(*score);
    if (!std::isfinite(base)) refuse("base must be a finite number, got " + shown(*score));
    if (names->kind == JsonValue::array) read_names(*names);
    metadata = notes->text;
    if (sum && sum->kind != JsonValue::null) checksum = sum->kind == JsonValue::string ? text_of(*sum) : "none";
  }

  static void check_version(const std::optional<JsonValue>& found) {
    const JsonValue version = found.value_or(JsonValue{JsonValue::null, "null"});
    const bool is_integer = version.kind == JsonValue::integer;
    const bool negative = version.text[0] == '-';
    const std::optional<std::int64_t> number = whole_number(version);  // none when it is huge
    if (!is_integer || negative || (number && *number < 1)) {
      refuse("the file is damaged: its format version is " + shown(version));
    }
    if (!number || *number > kFormatVersion) {
      refuse("the file has format version " + shown(version) + ", this rankwood reads up to " +
             std::to_string(kFormatVersion) + ": upgrade rankwood");
    }
  }

  void read_names(const JsonValue& names) {
    std::size_t n_names = 0;
    for_each_item(names, [&](const JsonValue& name) {
      if (name.kind != JsonValue::string) refuse("feature_names must be strings, one per feature");
      ++n_names;
    });
    if (n_names != static_cast<std::size_t>(n_features)) {
      refuse("feature_names must have one name per feature (" + std::to_string(n_features) + "), got " +
             std::to_string(n_names));
    }
    std::vector<std::string>& texts = feature_names.emplace();
    texts.reserve(n_names);
    for_each_item(names, [&](const JsonValue& name) { texts.push_back(text_of(name)); });
    std::vector<std::string_view> sorted(texts.begin(), texts.end());
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) refuse("two features have the name '" + one_line(*twice) + "'");
  }

  // As EarlyExit of src/rankwood/model/early_exit.py, which says what the numbers mean.
  void read_exit(const JsonValue& rule) {
    static constexpr std::array<std::string_view, 3> kNames = {"checkpoints", "margins", "top"};
    std::array<std::optional<JsonValue>, kNames.size()> parts;
    bool fine = rule.kind == JsonValue::object;
    if (fine) {
      for_each_entry(rule, [&](const std::string& name, const JsonValue& value) {
        const auto at = static_cast<std::size_t>(std::find(kNames.begin(), kNames.end(), name) - kNames.begin());
        if (at == kNames.size()) {
          fine = false;
        } else {
          set_once(parts[at], value, name, "early exit");
        }
      });
    }
    if (!fine || !parts[0] || !parts[1] || !parts[2]) {
      refuse("early exit has checkpoints, margins and top, got " + shown(rule));
    }
    for (const std::size_t i : {1, 0}) {
      if (parts[i]->kind != JsonValue::array) {
        refuse(std::string(kNames[i]) + " must be a list, got " + shown(*parts[i], true));
      }
    }
    ExitNumbers& numbers = exit.emplace();
    const auto whole = [](const JsonValue& value, const char* name) {
      const std::optional<std::int64_t> number = whole_number(value);
      if (!number || *number < 1 || *number > std::numeric_limits<std::int32_t>::max()) {
        refuse(std::string(name) + " must be a whole number of at least 1, got " + shown(value, true));
      }
      return *number;
    };
    for_each_item(*parts[0], [&](const JsonValue& one) { numbers.checkpoints.push_back(whole(one, "a checkpoint")); });
    for_each_item(*parts[1], [&](const JsonValue& one) {
      const bool nobody = one.kind == JsonValue::null;
      const std::optional<double> margin = nobody ? std::numeric_limits<double>::infinity() : any_number(one);
      if (!margin || !(*margin >= 0.0) || (std::isinf(*margin) && !nobody)) {
        refuse("a margin must be a number of 0 or more, got " + shown(one, true));
      }
      numbers.margins.push_back(*margin);
    });
    numbers.top = whole(*parts[2], "top");
    if (numbers.margins.size() != numbers.checkpoints.size()) {
      refuse(std::to_string(numbers.checkpoints.size()) + " checkpoints need as many margins, got " +
             std::to_string(numbers.margins.size()));
    }
    for (std::size_t i = 0; i < numbers.checkpoints.size(); ++i) {
      if (i > 0 && numbers.checkpoints[i] <= numbers.checkpoints[i - 1]) {
        refuse("checkpoints must rise, got " + shown(*parts[0]));
      }
    }
    for (const std::int64_t one : numbers.checkpoints) {
      if (one % static_cast<std::int64_t>(kSumGroup) != 0) {
        refuse("a checkpoint must be a multiple of " + std::to_string(kSumGroup) + " trees, got " +
               std::to_string(one));
      }
    }
  }

  void read_places(const JsonValue& header, std::uint64_t n_data) {
    std::array<std::optional<JsonValue>, kArrays.size()> found;
    std::optional<std::string> unknown;  // the first by name
    for_each_entry(header, [&](const std::string& name, const JsonValue& value) {
      if (name == "__metadata__") return;
      const auto at =
          std::find_if(kArrays.begin(), kArrays.end(), [&](const ArrayKind& one) { return one.name == name; });
      if (at == kArrays.end()) {
        if (!unknown || name < *unknown) unknown = name;
      } else {
        set_once(found[static_cast<std::size_t>(at - kArrays.begin())], value, name, "the header");
      }
    });
    std::optional<std::string_view> missing;
    for (std::size_t i = 0; i < kArrays.size(); ++i) {
      if (!found[i] && !kArrays[i].optional && (!missing || kArrays[i].name < *missing)) missing = kArrays[i].name;
    }
    for (std::size_t i = kSetArrays; i < kArrays.size(); ++i) {
      if (found[i].has_value() == has_sets_) continue;
      if (has_sets_) {
        missing = kArrays[i].name;
      } else {
        unknown = kArrays[i].name;
      }
    }
    if (missing) refuse("the file is damaged: it has no array " + std::string(*missing));
    if (unknown) refuse("the file is damaged: it has an unknown array " + one_line(*unknown));
    for (std::size_t i = 0; i < kArrays.size(); ++i) {
      if (found[i]) places[i] = place_of(kArrays[i], *found[i]);
    }
    if (has_sets_ && places.back().length == 0) refuse("the file is damaged: array set_thresholds is empty");
    std::uint64_t at = 0;
    for (const std::size_t i : order()) {
      if (places[i].begin != at) damaged(kArrays[i], "does not begin where the one before it ends");
      at = places[i].end;
    }
    if (at != n_data) {
      refuse("the file is damaged or cut off: its arrays have " + std::to_string(at) + " bytes, but there are " +
             std::to_string(n_data));
    }
  }

  [[noreturn]] static void damaged(const ArrayKind& kind, const char* what) {
    refuse("the file is damaged or cut off: array " + std::string(kind.name) + " " + what);
  }

  static Place place_of(const ArrayKind& kind, const JsonValue& entry) {
    std::optional<JsonValue> type, shape, offsets;
    if (entry.kind != JsonValue::object) damaged(kind, "has no type and place");
    for_each_entry(entry, [&](const std::string& name, const JsonValue& value) {
      auto* slot = name == "dtype" ? &type : name == "shape" ? &shape : name == "data_offsets" ? &offsets : nullptr;
      if (slot == nullptr) damaged(kind, "has an unknown property");
      set_once(*slot, value, name, "the header");
    });
    if (!type || !shape || !offsets || type->kind != JsonValue::string || shape->kind != JsonValue::array ||
        offsets->kind != JsonValue::array) {
      damaged(kind, "has no type and place");
    }
    const auto numbers_of = [&](const JsonValue& list) {  // the first three: there are one and two
      std::vector<std::uint64_t> numbers;
      for_each_item(list, [&](const JsonValue& value) {
        std::uint64_t number = 0;
        const char* last = value.text.data() + value.text.size();
        const auto [stop, error] = std::from_chars(value.text.data(), last, number);
        if (stop != last || error != std::errc()) damaged(kind, "has a size that is no number");
        if (numbers.size() < 3) numbers.push_back(number);
      });
      return numbers;
    };
    const std::vector<std::uint64_t> lengths = numbers_of(*shape), ends = numbers_of(*offsets);
    if (text_of(*type) != kind.type || lengths.size() != 1) {
      refuse("the file is damaged: array " + std::string(kind.name) + " is " + shown(*type) + " of shape " +
             spaced(*shape) + ", not a list of " + std::string(kind.type));
    }
    if (ends.size() != 2 || ends[1] < ends[0] || (ends[1] - ends[0]) % kind.entry_bytes != 0 ||
        (ends[1] - ends[0]) / kind.entry_bytes != lengths[0]) {
      damaged(kind, "has another size than its entries need");
    }
    return {true, ends[0], ends[1], static_cast<std::size_t>(lengths[0])};
  }

  // A list as Python shows it.
  static std::string spaced(const JsonValue& list) {
    std::string text;
    for_each_item(list, [&](const JsonValue& one) {
      if (text.size() < 100) text += (text.empty() ? "" : ", ") + std::string(one.text);
    });
    return one_line("[" + text + "]");
  }

  static constexpr std::size_t kMaxOdd = 6;
  bool has_sets_ = false;
};

}  // namespace rankwood
