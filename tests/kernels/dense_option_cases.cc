// Cases of everything beyond windows: each option alone, then together.
#include "kernels/dense_case.h"

namespace nsimplex::kernels::testing {
namespace {

// One head, one query more than a strip of rows, and an inner axis of several panels.
DenseCase small(const char* name, std::vector<int64_t> lengths = {11, 75}) {
  return {.name = name,
          .batch = 2,
          .heads = 4,
          .kv_heads = 2,
          .queries = 17,
          .dim = 12,
          .value_dim = 10,
          .lengths = std::move(lengths)};
}

// `shape` with one change more.
template <class Change>
DenseCase with(DenseCase shape, Change change) {
  change(shape);
  return shape;
}

void add_determinants(std::vector<DenseCase>& cases) {
  const auto determinant = [](DenseCase& shape) { shape.form = Form::determinant; };
  const auto of_dim = [&](const char* name, std::vector<int64_t> lengths, int64_t dim) {
    DenseCase shape = with(small(name, std::move(lengths)), determinant);
    shape.dim = dim;
    return shape;
  };
  cases.push_back(of_dim("determinant1", {70}, 10));
  cases.push_back(of_dim("determinant1_many_chunks", {40}, 70));
  cases.push_back(of_dim("determinant2", {11, 75}, 48));
  cases.push_back(of_dim("determinant2_odd_chunks", {9, 40}, 51));
  cases.push_back(of_dim("determinant2_first_axis_inner", {75, 11}, 9));
  cases.push_back(of_dim("determinant3", {5, 6, 40}, 8));
  cases.push_back(of_dim("determinant3_first_axis_inner", {40, 5, 6}, 72));
  cases.push_back(of_dim("determinant3_middle_axis_inner", {5, 40, 6}, 4));
  cases.push_back(of_dim("determinant4", {2, 3, 4, 9}, 10));
  cases.push_back(of_dim("determinant5", {2, 3, 2, 5, 2}, 6));
  cases.back().queries = 3;
  cases.push_back(with(of_dim("determinant2_causal_windows_sum", {90, 90}, 33), [](DenseCase& s) {
    s.queries = 90;
    s.window = {{40, 0}, {4, 0}};
    s.causal = true;
    s.strided = true;
    s.reduce = ValueReduce::sum;
  }));
  cases.push_back(
      with(of_dim("determinant2_decode_split", {900, 6}, 12), [](DenseCase& s) { s.queries = 2; }));
}

void add_documents(std::vector<DenseCase>& cases) {
  const auto packed = [](const char* name, std::vector<int64_t> documents, int order) {
    DenseCase shape = small(name, std::vector<int64_t>(order, documents.back()));
    shape.queries = documents.back();
    shape.documents = std::move(documents);
    return shape;
  };
  cases.push_back(packed("documents1", {0, 1, 40, 40, 97, 130}, 1));
  cases.push_back(with(packed("documents1_causal_long", {0, 300, 310, 700}, 1),
                       [](DenseCase& s) { s.causal = true, s.batch = 1; }));
  cases.push_back(packed("documents2", {0, 5, 17, 33, 40}, 2));
  cases.push_back(with(packed("documents2_windows", {0, 60, 61, 150}, 2), [](DenseCase& s) {
    s.batch = 1;
    s.causal = true;
    s.window = {{50, 0}, {3, 0}};
  }));
  cases.push_back(with(packed("documents2_lengths", {0, 20, 40, 70}, 2), [](DenseCase& s) {
    // The last queries of a document whose keys are cut off see nothing, between some that do.
    s.window = {{4, 1}, {30, 3}};
    s.key_lengths = {{70, 11}, {29, 70}};
  }));
  cases.push_back(with(packed("documents3", {0, 6, 20}, 3), [](DenseCase& s) { s.batch = 1; }));
}

void add_masks(std::vector<DenseCase>& cases) {
  const auto masked = [](const char* name, MaskKind kind, std::vector<int> broadcast) {
    DenseCase shape = small(name);
    shape.mask = kind;
    shape.mask_broadcast = std::move(broadcast);
    return shape;
  };
  cases.push_back(masked("boolean_mask", MaskKind::boolean, {}));
  cases.push_back(masked("boolean_mask_of_keys", MaskKind::boolean, {0, 1, 2, 3}));
  cases.push_back(masked("boolean_mask_of_leading_keys", MaskKind::boolean, {0, 1, 4}));
  cases.push_back(masked("additive_mask", MaskKind::additive, {}));
  cases.push_back(masked("additive_mask_of_pairs", MaskKind::additive, {0, 1, 2}));
  cases.push_back(masked("additive_mask_of_queries", MaskKind::additive, {0, 3, 4}));
  cases.push_back(with(masked("additive_mask_first_axis_inner", MaskKind::additive, {}),
                       [](DenseCase& s) { s.lengths = {75, 11}; }));
  const auto paired = [](const char* name, std::vector<int64_t> lengths,
                         std::vector<MaskKind> kinds) {
    DenseCase shape = small(name, std::move(lengths));
    shape.pair_masks = std::move(kinds);
    return shape;
  };
  constexpr MaskKind none = MaskKind::none, boolean = MaskKind::boolean,
                     additive = MaskKind::additive;
  cases.push_back(paired("pairs_order1", {130}, {additive}));
  cases.push_back(paired("pairs_boolean", {40, 30}, {boolean, boolean}));
  cases.push_back(paired("pairs_boolean_leading", {5, 130}, {boolean, none}));
  cases.push_back(paired("pairs_additive", {40, 30}, {additive, additive}));
  cases.push_back(paired("pairs_order3", {4, 40, 5}, {boolean, additive, additive}));
  cases.push_back(with(paired("pairs_mask_slopes", {9, 75}, {additive, boolean}), [](DenseCase& s) {
    s.mask = MaskKind::additive;
    s.slopes = true;
    s.softcap = 0.8;
    s.normalizer = Normalizer::sigmoid;
  }));
  cases.push_back(with(paired("pairs_split", {3, 700}, {additive, additive}), [](DenseCase& s) {
    s.queries = 2;
    s.reduce = ValueReduce::sum;
    s.dropout = 0.3;
  }));
  cases.push_back(with(small("key_masks"), [](DenseCase& s) { s.key_masks = true; }));
  cases.push_back(with(small("key_masks_order1", {75}), [](DenseCase& s) { s.key_masks = true; }));
  cases.push_back(with(small("key_masks_order3", {4, 5, 40}), [](DenseCase& s) {
    s.key_masks = true;
    s.reduce = ValueReduce::mean;
  }));
  cases.push_back(with(small("key_masks_split", {900}), [](DenseCase& s) {
    s.key_masks = true;
    s.queries = 2;
  }));
  cases.push_back(
      with(small("distinct_axes", {11, 40}), [](DenseCase& s) { s.distinct = Distinct::axes; }));
  cases.push_back(with(small("distinct_axes_order4", {4, 4, 4, 12}), [](DenseCase& s) {
    s.distinct = Distinct::axes;
    s.queries = 5;
  }));
  cases.push_back(with(small("distinct_with_query", {30, 17}), [](DenseCase& s) {
    s.distinct = Distinct::with_query;
    s.window = {{12, 2}, {3, 1}};
  }));
  cases.push_back(with(small("distinct_with_query_order1", {40}),
                       [](DenseCase& s) { s.distinct = Distinct::with_query; }));
  cases.push_back(with(small("distinct_with_query_leaves_nothing", {17, 17}), [](DenseCase& s) {
    s.distinct = Distinct::with_query;
    s.window = {{1, 0}, {5, 0}};
  }));
}

void add_normalizers(std::vector<DenseCase>& cases) {
  const auto normalised = [](const char* name, Normalizer normalizer) {
    DenseCase shape = small(name);
    shape.normalizer = normalizer;
    return shape;
  };
  cases.push_back(normalised("sink", Normalizer::softmax_sink));
  cases.push_back(with(normalised("sink_causal_windows", Normalizer::softmax_sink),
                       [](DenseCase& s) { s.causal = true, s.window = {{3, 0}, {20, 0}}; }));
  cases.push_back(with(normalised("sink_split", Normalizer::softmax_sink), [](DenseCase& s) {
    s.lengths = {1200};
    s.queries = 1;
  }));
  cases.push_back(normalised("sigmoid", Normalizer::sigmoid));
  cases.push_back(with(normalised("sigmoid_sum", Normalizer::sigmoid),
                       [](DenseCase& s) { s.reduce = ValueReduce::sum; }));
  cases.push_back(with(normalised("sigmoid_steep", Normalizer::sigmoid),
                       [](DenseCase& s) { s.logit_scale = 30.0; }));
  cases.push_back(normalised("relu", Normalizer::relu));
  cases.push_back(with(normalised("relu_causal_windows", Normalizer::relu),
                       [](DenseCase& s) { s.causal = true, s.window = {{3, 0}, {20, 0}}; }));
  cases.push_back(with(normalised("relu_split", Normalizer::relu), [](DenseCase& s) {
    s.lengths = {3, 700};
    s.queries = 2;
  }));
}

void add_biases(std::vector<DenseCase>& cases) {
  const auto capped = [](const char* name, std::vector<int64_t> lengths, double softcap) {
    DenseCase shape = small(name, std::move(lengths));
    shape.softcap = softcap;
    return shape;
  };
  cases.push_back(capped("softcap", {11, 75}, 0.8));
  cases.push_back(capped("softcap_wide", {11, 75}, 50.0));
  cases.push_back(with(capped("softcap_order1_causal", {130}, 0.5), [](DenseCase& s) {
    s.queries = 130;
    s.causal = true;
  }));
  cases.push_back(with(capped("softcap_windows_mask", {40, 40}, 0.3), [](DenseCase& s) {
    s.window = {{5, 2}, {30, 0}};
    s.mask = MaskKind::additive;
    s.dropout = 0.2;
  }));
  cases.push_back(with(capped("softcap_determinant_sigmoid", {4, 5, 40}, 1.5), [](DenseCase& s) {
    s.form = Form::determinant;
    s.normalizer = Normalizer::sigmoid;
  }));
  const auto sloped = [](DenseCase& s) { s.slopes = true; };
  cases.push_back(with(small("slopes"), sloped));
  cases.push_back(with(small("slopes_order1", {130}), sloped));
  cases.push_back(with(small("slopes_order3", {4, 40, 5}), sloped));
  cases.push_back(with(with(capped("slopes_softcap_mask", {40, 30}, 0.7), sloped),
                       [](DenseCase& s) { s.mask = MaskKind::additive, s.key_masks = true; }));
  cases.push_back(with(with(small("slopes_split", {3, 700}), sloped),
                       [](DenseCase& s) { s.queries = 2, s.distinct = Distinct::with_query; }));
  cases.push_back(with(capped("softcap_split", {3, 700}, 0.4), [](DenseCase& s) {
    s.queries = 2;
    s.reduce = ValueReduce::sum;
  }));
}

void add_dropout(std::vector<DenseCase>& cases) {
  const auto dropped = [](const char* name) {
    DenseCase shape = small(name);
    shape.dropout = 0.4;
    return shape;
  };
  cases.push_back(dropped("dropout"));
  cases.push_back(with(dropped("dropout_order1"), [](DenseCase& s) { s.lengths = {130}; }));
  cases.push_back(with(dropped("dropout_sum_causal"), [](DenseCase& s) {
    s.reduce = ValueReduce::sum;
    s.causal = true;
  }));
  cases.push_back(
      with(dropped("dropout_first_axis_inner"), [](DenseCase& s) { s.lengths = {75, 11}; }));
  cases.push_back(with(dropped("dropout_split"), [](DenseCase& s) {
    s.lengths = {2, 800};
    s.queries = 1;
  }));
}

void add_combinations(std::vector<DenseCase>& cases) {
  cases.push_back(with(small("all_softmax"), [](DenseCase& s) {
    s.form = Form::determinant;
    s.normalizer = Normalizer::softmax_sink;
    s.distinct = Distinct::axes;
    s.dropout = 0.2;
    s.key_masks = true;
    s.mask = MaskKind::additive;
    s.key_lengths = {{11, 9}, {70, 75}};
  }));
  cases.push_back(with(small("all_relu_documents", {40, 40}), [](DenseCase& s) {
    s.queries = 40;
    s.documents = {0, 13, 20, 40};
    s.normalizer = Normalizer::relu;
    s.distinct = Distinct::with_query;
    s.dropout = 0.3;
    s.reduce = ValueReduce::mean;
    s.mask = MaskKind::boolean;
    s.mask_broadcast = {1, 2};
    s.strided = true;
  }));
  cases.push_back(with(small("all_sigmoid_order3", {6, 5, 40}), [](DenseCase& s) {
    s.form = Form::determinant;
    s.normalizer = Normalizer::sigmoid;
    s.causal = true;
    s.window = {{5, 0}, {4, 1}, {30, 0}};
    s.distinct = Distinct::axes;
    s.dropout = 0.5;
    s.key_masks = true;
    s.mask = MaskKind::additive;
    s.mask_broadcast = {0, 2, 4};
  }));
  cases.push_back(with(small("all_softmax_split", {3, 700}), [](DenseCase& s) {
    s.queries = 2;
    s.dim = 15;
    s.form = Form::determinant;
    s.normalizer = Normalizer::softmax_sink;
    s.key_masks = true;
    s.dropout = 0.1;
    s.mask = MaskKind::additive;
    s.mask_broadcast = {3};
    s.reduce = ValueReduce::sum;
  }));
}

}  // namespace

std::vector<DenseCase> option_cases() {
  std::vector<DenseCase> cases;
  add_determinants(cases);
  add_documents(cases);
  add_masks(cases);
  add_normalizers(cases);
  add_biases(cases);
  add_dropout(cases);
  add_combinations(cases);
  return cases;
}

}  // namespace nsimplex::kernels::testing
