// Tests the effect of noise on attention scores, and how well an embedding shows a graph.

#include "lab/claims/robustness.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "causal/embedding/points.h"
#include "causal/graph/acyclic.h"
#include "lab/claims/attenuation.h"
#include "support/random.h"
#include "support/ranking_metrics.h"

namespace nsimplex::causal {

Placement placement_of(const Matrix& tangents, TableView graph) {
  const Points points(tangents);
  const int64_t nodes = points.count();
  std::vector<double> nearness;
  std::vector<uint8_t> joined;
  Paths paths(nodes);
  for (int64_t one = 0; one < nodes; ++one) {
    for (int64_t other = 0; other < nodes; ++other) {
      if (one != other && graph(one, other) != 0) paths.add({one, other});
      if (other <= one) continue;
      nearness.push_back(-points.distance(one, other));
      joined.push_back(graph(one, other) != 0 || graph(other, one) != 0);
    }
  }
  std::vector<double> radii, specificity;
  for (int64_t node = 0; node < nodes; ++node) {
    int64_t descendants = 0;
    for (int64_t other = 0; other < nodes; ++other) {
      descendants += other != node && paths.leads(node, other);
    }
    radii.push_back(points.radius(node));
    specificity.push_back(-static_cast<double>(descendants));
  }
  return {area_under_roc(nearness, joined), rank_correlation(radii, specificity)};
}

namespace {

using analysis::Statement;

constexpr double kLeastAccuracy = 0.938;                             // from Fig. S1
constexpr double kLargestNoise = std::numbers::pi / 12;              // of an angle, from Fig. S1
constexpr int64_t kGrid = 5;                                         // of Fig. S1, per direction
constexpr std::array<int64_t, 7> kNoises{1, 2, 5, 10, 20, 50, 100};  // N of Fig. S3
constexpr double kErrors = 4.5;  // standard errors that bound the deviation of a true statement
constexpr double kSmallBound = 0.01;   // of the last test of Prop. A.10
constexpr int64_t kMostAverages = 20;  // of the number of noises that the test needs
constexpr double kCopyNoise = 0.1;     // of the noisy copy of Prop. A.8

struct Mean {
  double mean, deviation, error;
};

Mean mean_of(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const Eigen::Map<const Eigen::ArrayXd> all(values.data(), std::ssize(values));
  const double mean = all.mean();
  const double deviation = std::sqrt((all - mean).square().sum() / (count - 1));
  return {mean, deviation, deviation / std::sqrt(count)};
}

// The remaining share of `errors` standard errors.
double within(double expected, const Mean& drawn) {
  return kErrors - std::abs(drawn.mean - expected) / drawn.error;
}

std::string at_sigma(const char* what, double sigma) {
  std::string text = std::to_string(sigma);
  text.erase(text.find_last_not_of('0') + 1);
  return std::string(what).append(", sigma = ").append(text);
}

class Experiment {
 public:
  explicit Experiment(const RobustnessOptions& options)
      : options_(options),
        scale_(angle_scale(options.scale, options.by_dimension, options.planes)),
        random_(options.seed) {}

  Robustness run() {
    accuracies();
    means();
    biases();
    tails();
    distinctions();
    return std::move(result_);
  }

 private:
  struct Pair {
    RotaryScore score;
    Vector gap;
  };

  Pair draw_pair(bool equal) {
    const Vector query = normal_vector(2 * options_.planes, random_);
    const Vector key = equal ? query : normal_vector(2 * options_.planes, random_);
    return {RotaryScore(query, key, scale_), random_pair(options_.planes, random_).gap()};
  }

  double disturbed(const Pair& pair, double sigma) {
    const double both = std::numbers::sqrt2 * sigma;
    return pair.score(pair.gap + both * normal_vector(options_.planes, random_));
  }

  double kept(double sigma) const { return std::exp(-scale_ * scale_ * sigma * sigma); }

  // Draws of xi_N.
  std::vector<double> average_biases(const Pair& pair, double sigma, int64_t noises,
                                     int64_t repetitions) {
    const double clean = pair.score(pair.gap);
    std::vector<double> all;
    for (int64_t repetition = 0; repetition < repetitions; ++repetition) {
      double sum = 0;
      for (int64_t noise = 0; noise < noises; ++noise) sum += disturbed(pair, sigma);
      all.push_back(sum / static_cast<double>(noises) - clean);
    }
    return all;
  }

  Statement& claim(std::string source, std::string text) {
    return result_.claims.emplace_back(std::move(source), std::move(text));
  }

  void step() {
    if (options_.checkpoint) options_.checkpoint(++done_);
  }

  void accuracies() {
    Statement& least = claim("Fig. S1", "for noise up to pi / 12 the accuracy is at least 93.8 %");
    for (int64_t i = 0; i < kGrid; ++i) {
      for (int64_t j = 0; j < kGrid; ++j) {
        const double first = kLargestNoise * static_cast<double>(i) / (kGrid - 1);
        const double second = kLargestNoise * static_cast<double>(j) / (kGrid - 1);
        const double variance = first * first + second * second;
        double sum = 0;
        for (int64_t draw = 0; draw < options_.draws; ++draw) {
          sum += std::cos(std::sqrt(variance) * random_.normal());
        }
        result_.accuracies.push_back(
            {first, second, std::exp(-0.5 * variance), sum / static_cast<double>(options_.draws)});
        least.add_slack(result_.accuracies.back().exact - kLeastAccuracy);
        step();
      }
    }
  }

  void means() {
    for (const double sigma : options_.sigmas) {
      Statement printed{at_sigma("Prop. A.9", sigma), "the mean disturbed score is A"};
      Statement shrunk{at_sigma("Eq. A.91", sigma), "it is exp(-c^2 sigma^2) A"};
      for (int64_t pair = 0; pair < options_.pairs; ++pair) {
        const Pair drawn = draw_pair(false);
        std::vector<double> scores;
        for (int64_t draw = 0; draw < options_.draws; ++draw) {
          scores.push_back(disturbed(drawn, sigma));
        }
        const double clean = drawn.score(drawn.gap);
        printed.add_slack(within(clean, mean_of(scores)));
        shrunk.add_slack(within(kept(sigma) * clean, mean_of(scores)));
        step();
      }
      result_.claims.push_back(std::move(printed));
      result_.claims.push_back(std::move(shrunk));
    }
  }

  void biases() {
    Statement& printed = claim("Prop. A.10", "P(|xi - E xi| >= eps) <= 2 exp(-eps^2 N / 8S)");
    for (const bool equal : {false, true}) {
      const Pair pair = draw_pair(equal);
      const double clean = pair.score(pair.gap);
      for (const double sigma : options_.sigmas) {
        const double limit = (kept(sigma) - 1) * clean;
        for (const int64_t noises : kNoises) {
          const auto all = average_biases(pair, sigma, noises, options_.repetitions);
          const Mean mean = mean_of(all);
          result_.biases.push_back({sigma, noises, equal, clean, mean.mean, mean.deviation, limit});
          // The bound itself, and the valid one with a quarter of the exponent's divisor.
          for (const double divisor : {8.0, 2.0}) {
            for (const double bound : {0.5, 0.1, 0.01}) {
              const double epsilon = pair.score.norms() * std::sqrt(divisor * std::log(2 / bound) /
                                                                    static_cast<double>(noises));
              printed.add_slack(bound - share_beyond(all, limit, epsilon));
            }
          }
          step();
        }
      }
    }
  }

  static double share_beyond(const std::vector<double>& all, double middle, double epsilon) {
    const auto beyond =
        std::ranges::count_if(all, [&](double each) { return std::abs(each - middle) >= epsilon; });
    return static_cast<double>(beyond) / static_cast<double>(all.size());
  }

  // As printed, around 0: eps is half of the limit, and N is so large that the bound is 1 %.
  void tails() {
    if (options_.sigmas.empty()) return;
    const double sigma = *std::ranges::max_element(options_.sigmas);
    const Pair pair = draw_pair(true);
    const double limit = (kept(sigma) - 1) * pair.score(pair.gap);
    const double epsilon = 0.5 * std::abs(limit);
    const double relative = pair.score.norms() / epsilon;
    const auto noises =
        static_cast<int64_t>(std::ceil(8 * relative * relative * std::log(2 / kSmallBound)));
    const auto all =
        average_biases(pair, sigma, noises, std::min(options_.repetitions, kMostAverages));
    Statement& printed = claim(at_sigma("Prop. A.10 as printed", sigma),
                               "P(|xi| >= eps) <= 2 exp(-eps^2 N / 8S), which falls to 0");
    printed.add_slack(kSmallBound - share_beyond(all, 0, epsilon));
    const Mean mean = mean_of(all);
    result_.biases.push_back(
        {sigma, noises, true, pair.score(pair.gap), mean.mean, mean.deviation, limit});
    step();
  }

  // W_q = 1, and W_k turns each plane by omega. The covariances of query and key are then [[cos,
  // -sin], [sin, cos]], so those that the proof assumes to be positive are positive for |omega| <
  // pi / 2.
  void distinctions() {
    Statement proof{"Prop. A.8, proof",
                    "without the sine a noisy copy scores above another feature"};
    Statement drawn{"Prop. A.8", "with it, too: projections drawn"};
    Statement against{"Prop. A.8", "with it, too: projections that turn against the gap"};
    Statement whole{"tr(R Cov(q, k))", "with the sine it is the mean of the draws"};
    Statement cut{"tr(R Cov(q, k))", "without the sine it is the mean of the draws"};
    for (int64_t pair = 0; pair < options_.pairs; ++pair) {
      const Vector gap = random_pair(options_.planes, random_).gap();
      const Eigen::ArrayXd turn = -scale_ * gap.array();  // phi_n - phi_m
      Eigen::ArrayXd omega = Eigen::ArrayXd::NullaryExpr(
          options_.planes, [&] { return std::numbers::pi * (random_.unit() - 0.5); });
      drawn.add_slack(distinguish(gap, turn, omega, proof, whole, cut));
      omega = turn.sign() * (0.5 * std::numbers::pi - 0.5 * turn.abs());
      against.add_slack(distinguish(gap, turn, omega, proof, whole, cut));
      step();
    }
    for (Statement* each : {&proof, &drawn, &against, &whole, &cut}) {
      result_.claims.push_back(std::move(*each));
    }
  }

  double distinguish(const Vector& gap, const Eigen::ArrayXd& turn, const Eigen::ArrayXd& omega,
                     Statement& proof, Statement& whole, Statement& cut) {
    const double with_sine = 2 * (turn + omega).cos().sum();
    const double without_sine = 2 * (turn.cos() * omega.cos()).sum();
    const auto key_of = [&](const Vector& v) {
      Vector key(v.size());
      for (int64_t t = 0; t < omega.size(); ++t) {
        const double sin = std::sin(omega[t]), cos = std::cos(omega[t]);
        key[2 * t] = cos * v[2 * t] - sin * v[2 * t + 1];
        key[2 * t + 1] = sin * v[2 * t] + cos * v[2 * t + 1];
      }
      return key;
    };
    const int64_t channels = 2 * options_.planes;
    std::vector<double> differences;
    for (int64_t draw = 0; draw < options_.draws; ++draw) {
      const Vector one = normal_vector(channels, random_), other = normal_vector(channels, random_);
      const Vector copy = one + kCopyNoise * normal_vector(channels, random_);
      differences.push_back(RotaryScore(one, key_of(copy) - key_of(other), scale_)(gap));
    }
    const Mean mean = mean_of(differences);
    result_.distinctions.push_back({with_sine, without_sine, mean.mean, mean.error});
    proof.add_slack(without_sine);
    whole.add_slack(within(with_sine, mean));
    cut.add_slack(within(without_sine, mean));
    return with_sine;
  }

  const RobustnessOptions& options_;
  double scale_;
  RandomStream random_;
  Robustness result_;
  int64_t done_ = 0;
};

}  // namespace

int64_t robustness_steps(const RobustnessOptions& options) {
  const int64_t sigmas = std::ssize(options.sigmas);
  return kGrid * kGrid + sigmas * options.pairs + 2 * sigmas * std::ssize(kNoises) +
         (sigmas > 0 ? 1 : 0) + options.pairs;
}

Robustness robustness(const RobustnessOptions& options) { return Experiment(options).run(); }

}  // namespace nsimplex::causal
