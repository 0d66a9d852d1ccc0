// The fast parser of SVMlight lines, compiled once per instruction set.
//
// Two steps per block of text: find every blank, then look at the tokens between them. Knowing where a token ends
// before looking at it keeps one number from waiting for the one before it. In a line that lists its features in
// order, the next token must start with the text " 17:", which is compared and not parsed.
//
// Anything out of the ordinary (an exponent, an id out of order, a mistake) goes to the careful parser, which
// decides; this one must only agree with it about the lines that it takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "short_decimal.hpp"
#include "svmlight_chunk.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(RANKWOOD_NEON)
#include <arm_neon.h>
#endif

#if defined(_MSC_VER)
#define RANKWOOD_NOINLINE __declspec(noinline)
#else
#define RANKWOOD_NOINLINE __attribute__((noinline))
#endif

namespace rankwood::RANKWOOD_ISA_NS {

// Bit i is set when text[i] is a blank or a control character, for 64 characters.
inline std::uint64_t blanks_of_64(const char* text) {
#if defined(__AVX2__)
  const __m256i space = _mm256_set1_epi8(' ');
  const auto blanks = [space](const char* p) {
    const __m256i chars = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(chars, space), chars)));
  };
  return blanks(text) | static_cast<std::uint64_t>(blanks(text + 32)) << 32;
#elif defined(__SSE2__)
  const __m128i space = _mm_set1_epi8(' ');
  std::uint64_t mask = 0;
  for (int part = 0; part < 4; ++part) {
    const __m128i chars = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + 16 * part));
    const int blanks = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(chars, space), chars));
    mask |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(blanks)) << (16 * part);
  }
  return mask;
#elif defined(RANKWOOD_NEON)
  // A bit of each character, then neighbours added three times: bytes of eight bits.
  const uint8x16_t space = vdupq_n_u8(' '), bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
  const auto blanks = [&](int part) {
    const uint8x16_t chars = vld1q_u8(reinterpret_cast<const std::uint8_t*>(text) + 16 * part);
    return vandq_u8(vcleq_u8(chars, space), bits);
  };
  const uint8x16_t fours = vpaddq_u8(vpaddq_u8(blanks(0), blanks(1)), vpaddq_u8(blanks(2), blanks(3)));
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(fours, fours)), 0);
#else
  std::uint64_t mask = 0;
  for (int i = 0; i < 64; ++i) mask |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[i]) <= ' ') << i;
  return mask;
#endif
}

inline constexpr std::size_t kBlock = 4096;

inline unsigned count_bits(std::uint64_t word) {
#if defined(__POPCNT__)
  return static_cast<unsigned>(__builtin_popcountll(word));
#else
  word -= word >> 1 & 0x5555555555555555;
  word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
  return static_cast<unsigned>(((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56);
#endif
}

// Write the places of the blanks among `size` <= kBlock characters; return their number.
// Up to 8 places too many are written.
inline std::size_t find_blanks(const char* text, std::size_t size, std::uint16_t* places) {
  std::size_t n = 0;
  for (std::size_t start = 0; start < size; start += 64) {
    std::uint64_t mask = blanks_of_64(text + start);
    if (size - start < 64) mask &= (std::uint64_t{1} << (size - start)) - 1;
    const std::size_t n_here = count_bits(mask);
    // Eight at a time whether there are as many or not: their number cannot be predicted.
    for (std::size_t done = 0; done < n_here; done += 8) {
      for (std::size_t i = 0; i < 8; ++i) {
        places[n + done + i] = static_cast<std::uint16_t>(start + trailing_zeros(mask | std::uint64_t{1} << 63));
        mask &= mask - 1;
      }
    }
    n += n_here;
  }
  return n;
}

class RowParser {
 public:
  explicit RowParser(const SvmlightChunk& chunk) : chunk_(chunk), line_(chunk.begin) {}

  // Parse the chunk, up to a line that the careful parser refuses; return the number of rows.
  std::size_t parse() {
    const char* base = chunk_.begin;
    Place at = line_start();
    while (base != chunk_.end) {
      const std::size_t left = static_cast<std::size_t>(chunk_.end - base);
      const std::size_t size = left < kBlock ? left : kBlock;
      const std::uint16_t* const last = blanks_ + find_blanks(base, size, blanks_);
      const char* next = base + size;
      for (const std::uint16_t* place = blanks_; place != last; ++place) {
        const char* const blank = base + *place;
        if (((load_word(at.before) ^ at.id->text) & at.id->mask) == 0) {
          const char* const value = at.before + at.id->size;
          at.before = blank;
          if (put_value(value, blank, *at.to)) {
            ++at.id;
            ++at.to;
            continue;
          }
          at.before = nullptr;
        } else {
          const bool empty = at.before + 1 == blank;
          at = take_token(at, blank);
          if (empty && at.before == blank && is_blank(*blank)) {
            place = last_alike(place, last, base);
            at.before = base + *place;
          }
        }
        if (at.before == nullptr) {
          next = leave_to_careful();
          if (next == nullptr) return row_;
          at = line_start();
          break;
        }
      }
      base = next;
      if (base == chunk_.end && at.before >= line_ && !end_line(at) && leave_to_careful() == nullptr) return row_;
    }
    return row_;
  }

 private:
  enum class Expect { label, qid, feature, line_end };

  struct Place {
    const char* before;  // the character before the next token; null: leave the line to the careful parser
    const IdText* id;    // of the feature that the next token is expected to be; no_id(): it cannot be one
    float* to;           // where the value of that feature goes
  };

  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

  // The last of a run of line feeds, or of other blanks, that nothing stands between: each says no more than the first.
  static const std::uint16_t* last_alike(const std::uint16_t* place, const std::uint16_t* end, const char* base) {
    const bool feeds = base[*place] == '\n';
    while (place + 1 != end && place[1] == *place + 1 && is_blank(base[place[1]]) &&
           (base[place[1]] == '\n') == feeds) {
      ++place;
    }
    return place;
  }

  const IdText* no_id() const { return chunk_.ids + chunk_.width; }

  bool put_value(const char* value, const char* end, float& to) const {
    const std::size_t size = static_cast<std::size_t>(end - value);
    const unsigned digit = static_cast<unsigned char>(*value) - unsigned{'0'};
    if (size == 1 && digit < 10) {  // every second value of MSLR is 0
      to = static_cast<float>(digit);
      return true;
    }
    return short_decimal_(value, size).as_float(to) || chunk_.careful_value(value, end, &to);
  }

  Place line_start() {
    expect_ = Expect::label;
    has_row_ = false;
    comment_ = nullptr;
    return {line_ - 1, no_id(), chunk_.X + row_ * chunk_.width};
  }

  // The line that ends with at.before is complete; false when it lacks something.
  bool end_line(Place& at) {
    if (expect_ == Expect::qid) return false;
    close_row(at);
    row_ += has_row_;
    line_ = at.before + 1;
    at = line_start();
    return true;
  }

  // No feature is to come.
  void close_row(Place& at) {
    if (expect_ == Expect::feature) leave_out(at, no_id());
    expect_ = Expect::line_end;
    at.id = no_id();
  }

  // The features before `id` are absent.
  void leave_out(Place& at, const IdText* id) const {
    for (; at.id < id; ++at.id) *at.to++ = chunk_.absent;
  }

  // The token between at.before and `blank`, which is not the value of the feature that follows.
  RANKWOOD_NOINLINE Place take_token(Place at, const char* blank) {
    constexpr Place kCareful{nullptr, nullptr, nullptr};
    if (at.before >= line_) {
      if (*at.before == '\n') {
        if (!end_line(at)) return kCareful;
      } else if (comment_ == nullptr && !is_blank(*at.before)) {
        return kCareful;  // some control character
      }
    }
    const char* const token = at.before + 1;
    at.before = blank;
    if (comment_ == nullptr) {
      if (token == blank) return at;
      if (*token != '#') return take_field(at, token, blank) ? at : kCareful;
      if (expect_ == Expect::qid) return kCareful;
      comment_ = token + 1;
      close_row(at);
    }
    if (*blank == '\n' && has_row_) {
      RowText& text = chunk_.texts[row_];
      text.comment = static_cast<std::uint32_t>(comment_ - chunk_.window);
      text.comment_size = static_cast<std::uint32_t>(blank - comment_);
    }
    return at;
  }

  bool take_field(Place& at, const char* token, const char* end) {
    const std::size_t size = static_cast<std::size_t>(end - token);
    if (expect_ == Expect::feature) return take_feature(at, token, end);
    if (expect_ == Expect::label) {
      const ShortDecimal label = short_decimal_(token, size);
      if (!label.ok) return false;
      chunk_.labels[row_] = label.as_double();
      chunk_.texts[row_] = RowText{};
      has_row_ = true;
      expect_ = chunk_.has_qid ? Expect::qid : Expect::feature;
    } else {
      if (size <= 4 || std::memcmp(token, "qid:", 4) != 0 || std::memchr(token, '#', size) != nullptr) return false;
      RowText& text = chunk_.texts[row_];
      text.qid = static_cast<std::uint32_t>(token + 4 - chunk_.window);
      text.qid_size = static_cast<std::uint32_t>(size - 4);
      expect_ = Expect::feature;
    }
    if (expect_ == Expect::feature) at.id = chunk_.ids;
    return true;
  }

  // A feature that is not the next one, or that stands after more than one space: those between are absent.
  bool take_feature(Place& at, const char* token, const char* end) {
    std::size_t id = 0;
    const char* c = token;
    for (; *c >= '0' && *c <= '9' && id <= kMaxFeatures; ++c) id = id * 10 + static_cast<std::size_t>(*c - '0');
    if (c == token || *c != ':' || id < chunk_.first_id || id - chunk_.first_id >= chunk_.width) return false;
    const IdText* const feature = chunk_.ids + (id - chunk_.first_id);
    if (feature < at.id) return false;
    leave_out(at, feature);
    ++at.id;
    return put_value(c + 1, end, *at.to++);
  }

  // Hand the whole line to the careful parser; return where the next one starts, or null to stop.
  RANKWOOD_NOINLINE const char* leave_to_careful() {
    const char* end = static_cast<const char*>(std::memchr(line_, '\n', static_cast<std::size_t>(chunk_.end - line_)));
    const LineStatus status = chunk_.careful_line(chunk_.context, line_, end, row_);
    if (status == LineStatus::stop) return nullptr;
    row_ += status == LineStatus::row;
    line_ = end + 1;
    return line_;
  }

  const ShortDecimalParser short_decimal_{};
  std::uint16_t blanks_[kBlock + 64];
  const SvmlightChunk& chunk_;
  const char* line_;               // where the current line starts
  const char* comment_ = nullptr;  // where its comment starts
  Expect expect_ = Expect::label;
  bool has_row_ = false;  // its label has been seen
  std::size_t row_ = 0;
};

inline std::size_t parse_svmlight_rows(const SvmlightChunk& chunk) { return RowParser(chunk).parse(); }

}  // namespace rankwood::RANKWOOD_ISA_NS
