// Tests claims that rotary attention scores fall with the distance and generality of points.

#include "lab/claims/attenuation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "causal/embedding/points.h"
#include "support/random.h"

namespace nsimplex::causal {

RotaryScore::RotaryScore(const Vector& query, const Vector& key, double scale) : scale_(scale) {
  const int64_t planes = query.size() / 2;
  alpha_.resize(planes);
  beta_.resize(planes);
  for (int64_t t = 0; t < planes; ++t) {
    const double a = query[2 * t], b = query[2 * t + 1], x = key[2 * t], y = key[2 * t + 1];
    alpha_[t] = a * x + b * y;
    beta_[t] = a * y - b * x;
  }
  largest_ = alpha_.abs().maxCoeff();
  rest_ = beta_.abs().sum();
  norms_ = query.norm() * key.norm();
}

double RotaryScore::operator()(const Vector& gap) const {
  const Eigen::ArrayXd angles = scale_ * gap.array();
  return (alpha_ * angles.cos() + beta_ * angles.sin()).sum();
}

double RotaryScore::bound(double gap) const {
  const auto d = static_cast<double>(planes());
  return largest_ * d * std::cos(scale_ * gap / d) + rest_;
}

double angle_scale(double scale, bool by_dimension, int64_t planes) {
  return by_dimension ? scale * std::sqrt(static_cast<double>(planes)) : scale;
}

Vector to_ball(const Vector& tangent) {
  const double radius = tangent.norm();
  constexpr double kMost = largest_ball_norm(std::numeric_limits<double>::epsilon());
  const double norm = std::min(std::tanh(0.5 * radius), kMost);
  return radius == 0 ? tangent : Vector(norm / radius * tangent);
}

Vector to_tangent(const Vector& ball) {
  const double norm = ball.norm();
  return norm == 0 ? ball : Vector(2 * std::atanh(norm) / norm * ball);
}

double gap_of(double first, double second, double distance) {
  return std::sinh(0.5 * distance) * std::sqrt((1 - first * first) * (1 - second * second));
}

Vector normal_vector(int64_t size, RandomStream& random) {
  return Vector::NullaryExpr(size, [&] { return random.normal(); });
}

Vector random_direction(int64_t dimension, RandomStream& random) {
  return normal_vector(dimension, random).normalized();
}

BallPair pair_at_angle(double first, double second, double angle, int64_t dimension,
                       RandomStream& random) {
  const Vector along = random_direction(dimension, random);
  Vector across = random_direction(dimension, random);
  across = (across - along.dot(across) * along).normalized();
  BallPair pair{first * along, second * (std::cos(angle) * along + std::sin(angle) * across), 0};
  pair.distance = distance(to_tangent(pair.first), to_tangent(pair.second));
  return pair;
}

BallPair random_pair(int64_t dimension, RandomStream& random) {
  const double first = random.unit(), second = random.unit();
  return pair_at_angle(first, second, std::numbers::pi * random.unit(), dimension, random);
}

BallPair pair_at_distance(double first, double distance, int64_t dimension, RandomStream& random) {
  const Vector start = to_tangent(first * random_direction(dimension, random));
  const Vector end = exponential(start, distance * random_direction(dimension, random));
  return {to_ball(start), to_ball(end), distance};
}

namespace {

using analysis::Statement;

// One query, one key and one direction of gaps, as in the paper's figure.
class FixedPair {
 public:
  explicit FixedPair(const AttenuationOptions& options)
      : random_(options.seed),
        query_(normal_vector(2 * options.planes, random_)),
        scale_(angle_scale(options.scale, options.by_dimension, options.planes)),
        drawn_(query_, normal_vector(2 * options.planes, random_), scale_),
        equal_(query_, query_, scale_),
        line_(random_direction(options.planes, random_)) {}

  AttenuationPoint operator()(double first, double second, double distance, double gap) const {
    return {first,
            second,
            distance,
            gap,
            drawn_.bound(gap) / drawn_.bound(0),
            equal_(gap * line_) / equal_.norms()};
  }

 private:
  RandomStream random_;
  Vector query_;
  double scale_;
  RotaryScore drawn_, equal_;
  Vector line_;
};

}  // namespace

std::vector<AttenuationPoint> attenuation_surface(const AttenuationOptions& options,
                                                  std::span<const double> norms,
                                                  std::span<const double> distances) {
  const FixedPair at(options);
  std::vector<AttenuationPoint> points;
  for (const double norm : norms) {
    for (const double distance : distances) {
      if (distance > 4 * std::atanh(norm)) continue;
      points.push_back(at(norm, norm, distance, gap_of(norm, norm, distance)));
    }
  }
  return points;
}

std::vector<AttenuationPoint> attenuation_path(const AttenuationOptions& options, double distance,
                                               int64_t points) {
  const FixedPair at(options);
  std::vector<AttenuationPoint> path;
  for (int64_t step = 0; step < points; ++step) {
    const double share = static_cast<double>(step) / static_cast<double>(points - 1);
    const double radius = 0.5 * distance * (1 - share);
    const double first = std::tanh(0.5 * radius), second = std::tanh(0.5 * (distance - radius));
    path.push_back(at(first, second, distance, first + second));
  }
  return path;
}

namespace {

// The two quantities that a statement compares: y should decrease as x increases.
struct Case {
  double x, y;
};
double fall(const Case& one, const Case& other) {
  return one.x <= other.x ? one.y - other.y : other.y - one.y;
}

// A random query with a random key and with itself. Each member tests one statement and returns its
// slack.
class Draw {
 public:
  Draw(const AttenuationOptions& options, RandomStream& random)
      : options_(options),
        random_(random),
        query_(normal_vector(2 * options.planes, random)),
        scale_(angle_scale(options.scale, options.by_dimension, options.planes)),
        drawn_(query_, normal_vector(2 * options.planes, random), scale_),
        equal_(query_, query_, scale_),
        distance_(options.least_distance +
                  (options.largest_distance - options.least_distance) * random.unit()) {}

  double bounded() {
    const Vector gap = any_pair().gap();
    return (drawn_.bound(gap.norm()) - std::abs(drawn_(gap))) / drawn_.bound(0);
  }

  double farther() { return fall(by_distance(any_pair()), by_distance(any_pair())); }

  double farther_at_norms() {
    const double first = random_.unit(), second = random_.unit();
    const auto pair = [&] {
      return pair_at_angle(first, second, std::numbers::pi * random_.unit(), options_.planes,
                           random_);
    };
    return fall(by_distance(pair()), by_distance(pair()));
  }

  double equal_farther() {
    const BallPair one = any_pair(), other = any_pair();
    return fall({one.distance, score(one.gap())}, {other.distance, score(other.gap())});
  }

  double equal_farther_on_a_line() {
    const Vector line = random_direction(options_.planes, random_);
    const auto antipodes = [&](double norm) { return Case{norm, score(2 * norm * line)}; };
    return fall(antipodes(random_.unit()), antipodes(random_.unit()));
  }

  double general() { return fall(by_generality(bound_of), by_generality(bound_of)); }

  double general_at_norm() {
    const double second = random_.unit(), radius = 2 * std::atanh(second);
    const double least = std::abs(distance_ - radius), most = distance_ + radius;
    const auto first = [&] {  // a norm of some point at this distance from e_n
      const double norm = std::tanh(0.5 * (least + (most - least) * random_.unit()));
      return Case{1 - norm, bound(gap_of(norm, second, distance_))};
    };
    return fall(first(), first());
  }

  double general_at_equal_norms() {
    const double least = std::tanh(0.25 * distance_);
    const auto both = [&] {
      const double norm = least + (1 - least) * random_.unit();
      return Case{1 - norm, bound(gap_of(norm, norm, distance_))};
    };
    return fall(both(), both());
  }

  double general_on_a_line() {
    const auto opposite = [&] {
      const double radius = 0.5 * distance_ * random_.unit();
      const double first = std::tanh(0.5 * radius), second = std::tanh(0.5 * (distance_ - radius));
      return Case{1 - first, bound(first + second)};
    };
    return fall(opposite(), opposite());
  }

  double limit() {
    const BallPair pair = pair_at_distance(0, distance_, options_.planes, random_);
    return kNear - std::abs(bound(pair.gap().norm()) - bound_at_origin(distance_));
  }

  double limit_is_least() {
    const BallPair pair = pair_at_distance(random_.unit(), distance_, options_.planes, random_);
    return bound(pair.gap().norm()) - bound_at_origin(distance_);
  }

  double limit_falls() {
    const double other = options_.least_distance +
                         (options_.largest_distance - options_.least_distance) * random_.unit();
    return fall({distance_, bound_at_origin(distance_)}, {other, bound_at_origin(other)});
  }

  double equal_general() { return fall(by_generality(score_of), by_generality(score_of)); }

 private:
  static constexpr double kNear = 1e-10;  // tolerance between two formulas for the same number

  BallPair any_pair() { return random_pair(options_.planes, random_); }

  double bound(double gap) const { return drawn_.bound(gap) / drawn_.bound(0); }
  double score(const Vector& gap) const { return equal_(gap) / equal_.norms(); }

  // a of Eq. A.73 with sqrt(C / (C + 1)) = tanh(d_p / 2).
  double bound_at_origin(double distance) const { return bound(std::tanh(0.5 * distance)); }

  Case by_distance(const BallPair& pair) const { return {pair.distance, bound(pair.gap().norm())}; }

  static double bound_of(const Draw& draw, const Vector& gap) { return draw.bound(gap.norm()); }
  static double score_of(const Draw& draw, const Vector& gap) { return draw.score(gap); }

  // m is anywhere, n at the draw's distance in a random direction.
  Case by_generality(double (*value)(const Draw&, const Vector&)) {
    const double first = random_.unit();
    const BallPair pair = pair_at_distance(first, distance_, options_.planes, random_);
    return {1 - first, value(*this, pair.gap())};
  }

  const AttenuationOptions& options_;
  RandomStream& random_;
  Vector query_;
  double scale_;
  RotaryScore drawn_, equal_;
  double distance_;
};

struct Test {
  const char *source, *text;
  double (Draw::*slack)();
};

constexpr Test kTests[] = {
    {"Eq. A.59", "|A| <= A+", &Draw::bounded},
    {"Prop. 4.1", "the farther pair has the smaller A+", &Draw::farther},
    {"Prop. 4.1, both norms held", "the farther pair has the smaller A+", &Draw::farther_at_norms},
    {"Cor. A.1", "k = q: the farther pair scores less", &Draw::equal_farther},
    {"Cor. A.1, antipodes on one line", "k = q: the farther pair scores less",
     &Draw::equal_farther_on_a_line},
    {"Prop. 4.2", "at one distance the more general m has the smaller A+", &Draw::general},
    {"Prop. 4.2, |e_n| held", "at one distance the more general m has the smaller A+",
     &Draw::general_at_norm},
    {"Prop. 4.2, |e_m| = |e_n|", "at one distance the more general m has the smaller A+",
     &Draw::general_at_equal_norms},
    {"Prop. 4.2, from antipode to origin", "at one distance the more general m has the smaller A+",
     &Draw::general_on_a_line},
    {"Cor. A.2", "with m at the origin, A+ is a", &Draw::limit},
    {"Cor. A.2", "everywhere else A+ is larger", &Draw::limit_is_least},
    {"Cor. A.2", "a falls with the distance", &Draw::limit_falls},
    {"Cor. A.3", "k = q: at one distance the more general m scores less", &Draw::equal_general}};

}  // namespace

std::vector<Statement> attenuation_claims(const AttenuationOptions& options) {
  RandomStream random(options.seed);
  std::vector<Statement> claims;
  int64_t done = 0;
  for (const Test& test : kTests) {
    Statement& claim = claims.emplace_back(test.source, test.text);
    for (int64_t draw = 0; draw < options.draws; ++draw) {
      claim.add_slack((Draw(options, random).*test.slack)());
      if (options.checkpoint) options.checkpoint(++done);
    }
  }
  return claims;
}

int64_t attenuation_draws(const AttenuationOptions& options) {
  return static_cast<int64_t>(std::size(kTests)) * options.draws;
}

}  // namespace nsimplex::causal
