// What the numbers of a plan must satisfy for the kernels, which follow them without a look.

#include "equivariant/sparse/plan_values.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "equivariant/sparse/class_parts.h"

namespace nsimplex::equivariant {
namespace {

constexpr std::array<const char*, kPlanTensors> kNames = {
    "group_offsets",  "group_rows",     "row_offsets", "row_sources",   "lookups",       "counts",
    "source_offsets", "source_lookups", "terms",       "output_places", "weight_classes"};

class PlanValues {
 public:
  PlanValues(const SumsCall& call, const char* name) : call_(call), name_(name) {}

  void check() const {
    check_sizes();
    const int64_t rows = segments_of(kRowOffsets), groups = segments_of(kGroupOffsets);
    const int64_t sources = segments_of(kSourceOffsets), lookups = size(kLookups);
    require(sources == rows + groups, kSourceOffsets,
            "one segment for each input row and each group");
    check_segments(kGroupOffsets, kGroupRows);
    check_segments(kRowOffsets, kRowSources);
    check_segments(kSourceOffsets, kSourceLookups);
    check_range(kGroupRows, 0, rows);
    check_range(kRowSources, 0, sources);
    check_range(kSourceLookups, 0, lookups);
    check_range(kLookups, -1, sources);
    check_rising_lookups();
  }

 private:
  int64_t size(PlanTensor which) const { return call_.plan[which].size(0); }
  int64_t segments_of(PlanTensor which) const { return size(which) - 1; }
  std::span<const int32_t> values(PlanTensor which) const {
    return {numbers(call_, which), static_cast<size_t>(call_.plan[which].numel())};
  }

  void require(bool holds, PlanTensor which, const char* expected) const {
    TORCH_CHECK_VALUE(holds, "[", name_, "] plan: expected that of an equivariant_plan, but its ",
                      kNames[which], " differ: expected ", expected);
  }

  // The arrays of all parts are as long as the parts say, and terms stay inside their part.
  void check_sizes() const {
    for (size_t t = 0; t < kPlanTensors; ++t) {
      const at::Tensor& tensor = call_.plan[t];
      const bool fits = tensor.is_cpu() && (t == kTerms ? tensor.dim() == 2 && tensor.size(1) == 3
                                                        : tensor.dim() == 1);
      require(fits, static_cast<PlanTensor>(t),
              t == kTerms ? "shape [terms, 3] on the CPU" : "one dimension on the CPU");
    }
    const auto* const terms = reinterpret_cast<const kernels::ClassTerm*>(numbers(call_, kTerms));
    PartPlace place;
    for (const PatternPart& part : unflatten_parts(call_.parts)) {
      const auto classes = static_cast<int64_t>(part.classes.size());
      for (const int64_t number : {part.rows, part.lookups, part.terms}) {
        require(number >= 0 && number <= std::numeric_limits<int32_t>::max(), kTerms,
                "parts of at most 2^31 - 1 rows");
      }
      const auto fits = [&](int64_t before, int64_t own, PlanTensor which) {
        require(own <= size(which) - before, which, "as many as the parts have");
        return before + own;
      };
      const int64_t first_term = place.term;
      place.row = fits(place.row, part.rows, kOutputPlaces);
      place.lookup = fits(place.lookup, part.rows * part.lookups, kLookups);
      place.term = fits(place.term, part.terms, kTerms);
      place.sum = fits(place.sum, part.rows * classes, kCounts);
      place.weight_class = fits(place.weight_class, classes, kWeightClasses);
      for (int64_t t = first_term; t < place.term; ++t) {
        require(terms[t].to_class >= 0 && terms[t].to_class < classes && terms[t].lookup >= 0 &&
                    terms[t].lookup < part.lookups,
                kTerms, "classes and look-ups of their part");
      }
    }
    const std::pair<int64_t, PlanTensor> ends[] = {{place.row, kOutputPlaces},
                                                   {place.lookup, kLookups},
                                                   {place.term, kTerms},
                                                   {place.sum, kCounts},
                                                   {place.weight_class, kWeightClasses}};
    for (const auto& [end, which] : ends)
      require(end == size(which), which, "as many as the parts have");
  }

  void check_segments(PlanTensor offsets, PlanTensor entries) const {
    const auto bounds = values(offsets);
    require(!bounds.empty() && bounds.front() == 0 && bounds.back() == size(entries) &&
                std::ranges::is_sorted(bounds),
            offsets, "a rising row from 0 to the number of entries");
  }

  void check_range(PlanTensor which, int64_t least, int64_t end) const {
    int32_t low = 0, high = -1;  // of all values: no branch in the loop
    for (const int32_t value : values(which)) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
    require(low >= least && high < end, which, "numbers inside their range");
  }

  // Sums by blocks take the look-ups of a source in order.
  void check_rising_lookups() const {
    const auto bounds = values(kSourceOffsets), lookups = values(kSourceLookups);
    for (size_t s = 0; s + 1 < bounds.size(); ++s) {
      require(std::ranges::is_sorted(lookups.subspan(bounds[s], bounds[s + 1] - bounds[s])),
              kSourceLookups, "rising numbers for each source");
    }
  }

  const SumsCall& call_;
  const char* name_;
};

}  // namespace

void check_plan_values(const SumsCall& call, const char* name) { PlanValues(call, name).check(); }

}  // namespace nsimplex::equivariant
