// Reads zip archives and the npy arrays in them.

#include "io/npz.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace nsimplex::io {
namespace {

constexpr uint64_t kLocalHeader = 0x04034b50, kLocalSize = 30;
constexpr uint64_t kDirectoryHeader = 0x02014b50, kDirectorySize = 46;
constexpr uint64_t kEnd = 0x06054b50, kEndSize = 22, kLongestComment = 0xffff;
constexpr uint64_t kEnd64 = 0x06064b50, kEnd64Size = 56;
constexpr uint64_t kLocator64 = 0x07064b50, kLocator64Size = 20;
constexpr uint64_t kIn64 = 0xffffffff;  // a field that is in the zip64 part instead
constexpr uint64_t kZip64Fields = 1;    // the number of that part
constexpr uint64_t kStored = 0, kDeflated = 8, kEncrypted = 1;
constexpr uint64_t kBestRatio = 1032;  // what deflate can reach (zlib's technical details)

// The end record, which is last in the file except for a comment.
uint64_t find_end(const Source& source) {
  const uint64_t size = source.bytes.size();
  if (size >= kEndSize) {
    const uint64_t last = size - kEndSize;
    const uint64_t first = last - std::min(last, kLongestComment);
    for (uint64_t at = last + 1; at-- > first;) {
      if (source.little(at, 4) == kEnd && at + kEndSize + source.little(at + 20, 2) == size) {
        return at;
      }
    }
  }
  source.fail("not a zip archive, or truncated: it has no directory");
}

// The first `size` bytes that raw deflate packed. `whole`: they are all, which is checked.
std::vector<uint8_t> inflated(const Source& source, std::span<const uint8_t> packed, uint64_t size,
                              bool whole) {
  constexpr uint64_t kMostAtOnce = std::numeric_limits<uInt>::max();
  if (size / kBestRatio > packed.size()) source.fail("the sizes in its directory cannot be");
  std::vector<uint8_t> result(size);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) source.fail("zlib could not start");
  stream.next_in = const_cast<Bytef*>(packed.data());
  uint64_t read = 0, written = 0;
  uint8_t none = 0;  // zlib needs a place to write even if there is no output
  int state = Z_OK;
  while (state == Z_OK && (whole || written < size)) {
    const auto room_in = static_cast<uInt>(std::min(packed.size() - read, kMostAtOnce));
    const auto room_out = static_cast<uInt>(std::min(size - written, kMostAtOnce));
    stream.avail_in = room_in;
    stream.avail_out = room_out;
    stream.next_out = room_out == 0 ? &none : result.data() + written;
    state = inflate(&stream, Z_NO_FLUSH);
    read += room_in - stream.avail_in;
    written += room_out - stream.avail_out;
  }
  inflateEnd(&stream);
  const bool ended = state == Z_STREAM_END && read == packed.size();
  if (written != size || (whole && !ended)) source.fail("its compressed data are damaged");
  return result;
}

uint32_t checksum(std::span<const uint8_t> bytes) {
  return static_cast<uint32_t>(crc32_z(0, bytes.data(), bytes.size()));
}

}  // namespace

Zip::Zip(Source source) : source_(std::move(source)) {
  const uint64_t end = find_end(source_);
  uint64_t count = source_.little(end + 10, 2), size = source_.little(end + 12, 4),
           begin = source_.little(end + 16, 4);
  if (end >= kLocator64Size && source_.little(end - kLocator64Size, 4) == kLocator64) {
    const uint64_t end64 = source_.little(end - kLocator64Size + 8, 8);
    source_.part(end64, kEnd64Size);
    if (source_.little(end64, 4) != kEnd64) source_.fail("its zip64 directory is damaged");
    count = source_.little(end64 + 32, 8);
    size = source_.little(end64 + 40, 8);
    begin = source_.little(end64 + 48, 8);
  }
  read_directory(begin, size, count);
  check_entries(begin);
}

void Zip::read_directory(uint64_t begin, uint64_t size, uint64_t count) {
  source_.part(begin, size);
  uint64_t at = begin;
  while (at < begin + size) {
    if (source_.little(at, 4) != kDirectoryHeader) source_.fail("its directory is damaged");
    const uint64_t name = source_.little(at + 28, 2), extra = source_.little(at + 30, 2),
                   comment = source_.little(at + 32, 2);
    const auto letters = source_.part(at + kDirectorySize, name);
    ZipEntry entry{std::string(letters.begin(), letters.end()),
                   source_.little(at + 8, 2),
                   source_.little(at + 10, 2),
                   source_.little(at + 16, 4),
                   source_.little(at + 20, 4),
                   source_.little(at + 24, 4),
                   source_.little(at + 42, 4)};
    read_zip64_fields(entry, at + kDirectorySize + name, extra);
    entries_.push_back(std::move(entry));
    at += kDirectorySize + name + extra + comment;
  }
  if (entries_.size() != count) source_.fail("its directory is damaged");
}

// Sizes and place of an entry beyond 4 GiB, in this order; each exists only if its short field says
// so.
void Zip::read_zip64_fields(ZipEntry& entry, uint64_t begin, uint64_t size) {
  source_.part(begin, size);
  for (uint64_t at = begin; at + 4 <= begin + size;) {
    const uint64_t kind = source_.little(at, 2), length = source_.little(at + 2, 2);
    uint64_t field = at + 4;
    for (uint64_t* value : {&entry.size, &entry.packed, &entry.header}) {
      if (kind != kZip64Fields || *value != kIn64) continue;
      if (field + 8 > at + 4 + length) source_.fail("its directory is damaged");
      *value = source_.little(field, 8);
      field += 8;
    }
    at += 4 + length;
  }
}

// No byte of the archive is part of two entries, so the archive's size bounds the size of
// everything that it unpacks to. No two entries have the same name.
void Zip::check_entries(uint64_t directory) const {
  std::vector<const ZipEntry*> order;
  order.reserve(entries_.size());
  for (const ZipEntry& entry : entries_) order.push_back(&entry);
  std::ranges::sort(order, {}, [](const ZipEntry* entry) { return entry->header; });
  uint64_t taken = 0;
  for (const ZipEntry* entry : order) {
    const Source named = source_.inner(entry->name, source_.bytes);
    if (entry->header < taken) named.fail("its data overlap those of another entry");
    const uint64_t begin = data_begin(named, *entry);
    named.part(begin, entry->packed);
    taken = begin + entry->packed;
    if (taken > directory) named.fail("its data overlap the directory");
  }
  std::ranges::sort(order, {}, [](const ZipEntry* entry) { return std::string_view(entry->name); });
  const auto twice = std::ranges::adjacent_find(
      order, {}, [](const ZipEntry* entry) { return std::string_view(entry->name); });
  if (twice != order.end()) source_.fail("two entries are called " + quoted_name((*twice)->name));
}

uint64_t Zip::data_begin(const Source& named, const ZipEntry& entry) const {
  named.part(entry.header, kLocalSize);
  if (named.little(entry.header, 4) != kLocalHeader) named.fail("its header is damaged");
  return entry.header + kLocalSize + named.little(entry.header + 26, 2) +
         named.little(entry.header + 28, 2);
}

std::vector<uint8_t> Zip::unpack(const ZipEntry& entry, uint64_t size, bool whole) const {
  const Source named = source_.inner(entry.name, source_.bytes);
  if (entry.flags & kEncrypted) named.fail("is encrypted");
  if (entry.method != kStored && entry.method != kDeflated) {
    named.fail("compression method " + std::to_string(entry.method) +
               " is not supported, only stored and deflated");
  }
  const auto packed = named.part(data_begin(named, entry), entry.packed);
  if (entry.method == kDeflated) return inflated(named, packed, size, whole);
  if (entry.packed != entry.size) named.fail("the sizes in its directory cannot be");
  return {packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size)};
}

std::vector<uint8_t> Zip::contents(const ZipEntry& entry) const {
  std::vector<uint8_t> result = unpack(entry, entry.size, true);
  if (checksum(result) != entry.crc) {
    source_.inner(entry.name, {}).fail("its data are damaged: the checksum differs");
  }
  return result;
}

std::vector<uint8_t> Zip::beginning(const ZipEntry& entry, uint64_t most) const {
  return unpack(entry, std::min(most, entry.size), most >= entry.size);
}

namespace {

constexpr std::string_view kSuffix = ".npy";

// A name in a list: short, since there may be many.
std::string shown(std::string_view name) {
  constexpr size_t kMost = 40;
  return name.size() <= kMost ? printable(name) : quoted_name(name);
}

}  // namespace

Npz::Npz(const Source& source) : source_(source), zip_(source) {
  for (const ZipEntry& entry : zip_.entries()) {
    if (!entry.name.ends_with(kSuffix)) continue;
    names_.push_back(entry.name.substr(0, entry.name.size() - kSuffix.size()));
    by_name_.emplace(names_.back(), &entry);
  }
}

std::string Npz::list_of_names() const {
  constexpr size_t kMost = 10;
  std::string result;
  for (size_t at = 0; at < std::min(names_.size(), kMost); ++at) {
    result.append(at == 0 ? "" : ", ").append(shown(names_[at]));
  }
  if (names_.size() > kMost) {
    result.append(" and ").append(std::to_string(names_.size() - kMost)).append(" more");
  }
  return result.empty() ? "none" : result;
}

const ZipEntry& Npz::entry(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    source_.fail("expected an array " + quoted_name(name) + ", got " + list_of_names());
  }
  return *found->second;
}

NpyHeader Npz::header(const std::string& name) const {
  const std::vector<uint8_t> bytes = zip_.beginning(entry(name), kHeaderEnd);
  return parse_npy_header(array_source(name, bytes));
}

Array Npz::read(const std::string& name) const {
  const ZipEntry& packed = entry(name);
  check_npy(array_source(name, {}), header(name), packed.size);
  const std::vector<uint8_t> bytes = zip_.contents(packed);
  return parse_npy(array_source(name, bytes));
}

Array Npz::read_matrix() const {
  std::vector<std::string> matrices;
  for (const std::string& name : names_) {
    const NpyHeader facts = header(name);
    if (facts.shape.size() == 2 && !facts.is_pickled()) matrices.push_back(name);
  }
  if (matrices.size() != 1) {
    source_.fail("expected one array of two dimensions, got " + std::to_string(matrices.size()) +
                 " among " + list_of_names() + (matrices.empty() ? "" : ": name one"));
  }
  return read(matrices.front());
}

}  // namespace nsimplex::io
