#include "kernels/cpu/equivariant/class_kernels.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/cpu/shared/simd.h"
#include "kernels/drive.h"

namespace nsimplex::kernels::testing {
namespace {

std::vector<double> draw(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double& value : values) value = static_cast<float>(normal(generator));
  return values;
}

// Segments of these sizes over random rows.
struct Segments {
  std::vector<int32_t> offsets{0}, rows;
  int32_t sources;

  Segments(const std::vector<int32_t>& sizes, int32_t sources) : sources(sources) {
    std::mt19937 generator(5);
    for (const int32_t size : sizes) {
      for (int32_t e = 0; e < size; ++e)
        rows.push_back(static_cast<int32_t>(generator() % sources));
      offsets.push_back(static_cast<int32_t>(rows.size()));
    }
  }

  template <class From, class To>
  std::vector<To> run(int64_t channels, const std::vector<double>& values, Drive drive) const {
    const std::vector<From> from(values.begin(), values.end());
    const auto segments = static_cast<int64_t>(offsets.size()) - 1;
    std::vector<To> to(segments * channels, -1);
    const SegmentSums<From, To> problem{
        offsets.data(), rows.data(), segments, static_cast<int64_t>(rows.size()),
        channels,       from.data(), to.data()};
    const SumsPlan plan = plan_segment_sums(problem);
    drive_plan(plan, drive, [&](int phase, int64_t task, void* workspace, void*) {
      run_segment_sums(problem, plan, phase, task, workspace);
    });
    return to;
  }

  std::vector<double> define(int64_t channels, const std::vector<double>& values) const {
    std::vector<double> to((offsets.size() - 1) * channels, 0);
    for (size_t s = 0; s + 1 < offsets.size(); ++s) {
      for (int32_t e = offsets[s]; e < offsets[s + 1]; ++e) {
        for (int64_t c = 0; c < channels; ++c) {
          to[s * channels + c] += values[rows[e] * channels + c];
        }
      }
    }
    return to;
  }
};

// Empty segments everywhere, segments within a task, at its edges and over several.
const std::vector<std::vector<int32_t>> kSizes = {
    {},
    {0},
    {0, 0, 3, 0, 1, 0},
    {4096},
    {4096, 0, 4096, 0},
    {4095, 2, 4095, 0},
    {1, 20000, 0, 5, 12000, 0, 0},
    {4000, 4000, 4000, 0, 1, 300, 8192, 0},
};

template <class T>
void expect_near(const std::vector<T>& ours, const std::vector<double>& exact, double error) {
  ASSERT_EQ(ours.size(), exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_NEAR(ours[i], exact[i], error * (1 + std::abs(exact[i]))) << "at " << i;
  }
}

TEST(SegmentSums, MatchTheDefinitionAtEveryLevelAndForAnyNumberOfThreads) {
  for (const std::string& level : simd_levels()) {
    set_simd_level(level);
    for (size_t shape = 0; shape < kSizes.size(); ++shape) {
      for (const int64_t channels : {1, 3, 8, 37}) {
        SCOPED_TRACE(level + ", segments " + std::to_string(shape) + ", channels " +
                     std::to_string(channels));
        const Segments segments(kSizes[shape], 50);
        const std::vector<double> values = draw(50 * channels, 1);
        const std::vector<double> exact = segments.define(channels, values);
        const auto one = segments.run<float, double>(channels, values, {});
        expect_near(one, exact, 1e-12);
        EXPECT_EQ(one, (segments.run<float, double>(channels, values, {3, true})));
        expect_near(segments.run<double, double>(channels, values, {2}), exact, 1e-12);
        expect_near(segments.run<double, float>(channels, values, {2}), exact, 1e-6);
      }
    }
  }
  set_simd_level("");
}

// Two classes of three look-ups: S0 = G0 - G1 - G2, S1 = 2 G1.
struct Part {
  static constexpr int64_t kRows = 700, kSources = 40, kTables = 30, kClasses = 2, kLookups = 3;
  std::vector<ClassTerm> by_class{{0, 0, 1}, {0, 1, -1}, {0, 2, -1}, {1, 1, 2}};
  std::vector<ClassTerm> by_lookup{{0, 0, 1}, {0, 1, -1}, {1, 1, 2}, {0, 2, -1}};
  std::vector<int32_t> lookup, count;

  Part() {
    std::mt19937 generator(9);
    for (int64_t i = 0; i < kRows * kLookups; ++i) {
      lookup.push_back(static_cast<int32_t>(generator() % (kSources + kTables + 1)) - 1);
    }
    for (int64_t i = 0; i < kRows * kClasses; ++i) count.push_back(generator() % 4);
  }

  ClassPart part(const std::vector<ClassTerm>& terms, bool mean) const {
    return {
        kRows, kClasses, kLookups, 4, terms.data(), lookup.data(), mean ? count.data() : nullptr};
  }
  double share(int64_t place, bool mean) const {
    return !mean ? 1 : count[place] == 0 ? 0 : 1. / count[place];
  }
};

template <class T>
void expect_sums(int64_t channels, bool mean, double error) {
  const Part part;
  const auto features = draw(Part::kSources * channels, 1),
             tables = draw(Part::kTables * channels, 2);
  const std::vector<T> x(features.begin(), features.end());
  std::vector<double> exact(Part::kRows * Part::kClasses * channels, 0);
  std::vector<T> sums(exact.size(), -1);
  for (int64_t row = 0; row < Part::kRows; ++row) {
    for (const ClassTerm& term : part.by_class) {
      const int64_t source = part.lookup[row * Part::kLookups + term.lookup];
      if (source < 0) continue;
      const int64_t place = row * Part::kClasses + term.to_class;
      for (int64_t c = 0; c < channels; ++c) {
        const double value = source < Part::kSources
                                 ? features[source * channels + c]
                                 : tables[(source - Part::kSources) * channels + c];
        exact[place * channels + c] += term.coefficient * value * part.share(place, mean);
      }
    }
  }
  ClassSums<T> problem{part.part(part.by_class, mean),
                       channels,
                       Part::kSources,
                       x.data(),
                       tables.data(),
                       sums.data()};
  const SumsPlan plan = plan_class_sums(problem);
  drive_plan(plan, {2}, [&](int, int64_t task, void*, void*) { run_class_sums(problem, task); });
  expect_near(sums, exact, error);
}

template <class T>
void expect_transposed(int64_t channels, bool mean, double error) {
  const Part part;
  const auto grad = draw(Part::kRows * Part::kClasses * channels, 3);
  const std::vector<T> from(grad.begin(), grad.end());
  constexpr double kUntouched = -7;
  std::vector<double> exact(Part::kRows * Part::kLookups * channels, 0);
  std::vector<T> to(exact.size(), static_cast<T>(kUntouched));
  for (int64_t row = 0; row < Part::kRows; ++row) {
    for (const ClassTerm& term : part.by_lookup) {
      const int64_t place = row * Part::kClasses + term.to_class;
      for (int64_t c = 0; c < channels; ++c) {
        exact[(row * Part::kLookups + term.lookup) * channels + c] +=
            term.coefficient * part.share(place, mean) * grad[place * channels + c];
      }
    }
  }
  for (size_t i = 0; i < part.lookup.size(); ++i) {
    if (part.lookup[i] < 0) std::fill_n(exact.begin() + i * channels, channels, kUntouched);
  }
  ClassSumsTransposed<T> problem{part.part(part.by_lookup, mean), channels, from.data(), to.data()};
  const SumsPlan plan = plan_class_sums(problem);
  drive_plan(plan, {3, true},
             [&](int, int64_t task, void*, void*) { run_class_sums_transposed(problem, task); });
  expect_near(to, exact, error);
}

TEST(ClassSums, MatchTheDefinitionAtEveryLevel) {
  for (const std::string& level : simd_levels()) {
    set_simd_level(level);
    for (const int64_t channels : {1, 3, 8, 37}) {
      for (const bool mean : {false, true}) {
        SCOPED_TRACE(level + ", channels " + std::to_string(channels));
        expect_sums<float>(channels, mean, 1e-6);
        expect_sums<double>(channels, mean, 1e-14);
        expect_transposed<float>(channels, mean, 1e-6);
        expect_transposed<double>(channels, mean, 1e-14);
      }
    }
  }
  set_simd_level("");
}

}  // namespace
}  // namespace nsimplex::kernels::testing
