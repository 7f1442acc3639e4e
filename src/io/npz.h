// Declares zip archives and the npz files that NumPy makes of them.

#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/array.h"
#include "io/input_file.h"
#include "io/npy.h"

namespace nsimplex::io {

inline constexpr std::string_view kZipMagic = "PK\x03\x04";

/// A file in a zip archive, from the archive's directory.
struct ZipEntry {
  std::string name;
  uint64_t flags = 0, method = 0, crc = 0;
  uint64_t packed = 0, size = 0;  ///< bytes in the archive and unpacked
  uint64_t header = 0;            ///< where its local header begins
};

/// A zip archive, also of more than 4 GiB (zip64), with stored or deflated entries. The bytes of
/// the source must outlive this object.
/// Format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
class Zip {
 public:
  /// Reads the directory. Fails if there is none, if it is damaged, or if entries share bytes of
  /// the archive or have the same name.
  explicit Zip(Source source);

  const std::vector<ZipEntry>& entries() const { return entries_; }

  /// Unpacks an entry. Fails for encryption, other methods of compression, data that do not match
  /// the size and checksum of the directory, and sizes that deflate cannot reach. It takes at most
  /// 1032 times the bytes of the entry, deflate's own limit.
  std::vector<uint8_t> contents(const ZipEntry& entry) const;

  /// The first `most` bytes of the unpacked entry, or all. Only these are unpacked, and the
  /// checksum is not checked.
  std::vector<uint8_t> beginning(const ZipEntry& entry, uint64_t most) const;

 private:
  void read_directory(uint64_t begin, uint64_t size, uint64_t count);
  void read_zip64_fields(ZipEntry& entry, uint64_t begin, uint64_t size);
  void check_entries(uint64_t directory) const;
  uint64_t data_begin(const Source& named, const ZipEntry& entry) const;
  std::vector<uint8_t> unpack(const ZipEntry& entry, uint64_t size, bool whole) const;

  Source source_;
  std::vector<ZipEntry> entries_;
};

/// Arrays by name, as numpy.savez and numpy.savez_compressed write them: a zip archive of npy
/// files. Folders and other files in the archive are skipped. An array is read when it is
/// requested, so one with pickled objects does not affect the others. The bytes of the source must
/// outlive this object.
class Npz {
 public:
  explicit Npz(const Source& source);
  Npz(const Npz&) = delete;  // by_name_ points into zip_
  Npz& operator=(const Npz&) = delete;

  /// Names without ".npy", in the order of the archive.
  const std::vector<std::string>& names() const { return names_; }

  bool has(const std::string& name) const { return by_name_.contains(name); }

  /// Fails if there is no such array or if parse_npy() fails. The header is compared with the size
  /// in the directory before anything is unpacked.
  Array read(const std::string& name) const;

  /// The only array with two dimensions and plain elements. Fails if there is none or several. Only
  /// headers are unpacked to find it.
  Array read_matrix() const;

  /// "train_data, nums_type"
  std::string list_of_names() const;

 private:
  const ZipEntry& entry(const std::string& name) const;
  NpyHeader header(const std::string& name) const;
  Source array_source(const std::string& name, std::span<const uint8_t> bytes) const {
    return source_.inner("array " + name, bytes);
  }

  Source source_;
  Zip zip_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, const ZipEntry*> by_name_;  // entries of zip_
};

}  // namespace nsimplex::io
