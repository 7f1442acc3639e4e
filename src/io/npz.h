#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "io/array.h"
#include "io/npy.h"
#include "io/zip.h"

namespace nsimplex::io {

/// Arrays by name, as numpy.savez and numpy.savez_compressed write them: a zip archive of npy
/// files. Folders and other files in the archive are passed over; an array is read when it is asked
/// for, so that one of pickled objects is no hindrance to the others. The bytes of the source must
/// live as long as this.
class Npz {
 public:
  explicit Npz(const Source& source);
  Npz(const Npz&) = delete;  // by_name_ points into zip_
  Npz& operator=(const Npz&) = delete;

  /// Names without ".npy", in the order of the archive.
  const std::vector<std::string>& names() const { return names_; }

  bool has(const std::string& name) const { return by_name_.contains(name); }

  /// Fails where there is no such array or parse_npy() does; what the header asks for is compared
  /// with the size in the directory before anything is unpacked.
  Array read(const std::string& name) const;

  /// The only array of two dimensions and of plain elements; fails where there is none or several. Only
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
