// Plans of attention as lists of tensors and numbers, and back.

#include <ATen/ATen.h>

#include <array>
#include <cstring>

#include "equivariant/attention/equivariant_attention_call.h"
#include "equivariant/linear/equivariant_plan.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;

// Beside those of sums.
constexpr size_t kSharedTensors = 3, kSourceTensors = 2;
constexpr size_t kRelationTensors = 4, kRowGroupTensors = 2, kPartTensors = 3;

// Numbers one after the other, lists with their length in front.
class Writer {
 public:
  void number(int64_t number) { numbers_.push_back(number); }
  void list(const std::vector<int64_t>& numbers) {
    number(std::ssize(numbers));
    numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
  }
  std::vector<int64_t> take() { return std::move(numbers_); }

 private:
  std::vector<int64_t> numbers_;
};

class Reader {
 public:
  explicit Reader(at::IntArrayRef numbers) : numbers_(numbers) {}

  int64_t number() {
    TORCH_CHECK_VALUE(at_ < numbers_.size(), kExpected);
    return numbers_[at_++];
  }
  /// At most one for each number that is left.
  int64_t count() {
    const int64_t count = number();
    TORCH_CHECK_VALUE(count >= 0 && static_cast<size_t>(count) <= numbers_.size() - at_, kExpected);
    return count;
  }
  std::vector<int64_t> list() {
    const auto length = static_cast<size_t>(count());
    at_ += length;
    return numbers_.slice(at_ - length, length).vec();
  }
  bool done() const { return at_ == numbers_.size(); }

  static constexpr char kExpected[] =
      "[equivariant_attention] parts: expected those of an equivariant_attention_plan";

 private:
  at::IntArrayRef numbers_;
  size_t at_ = 0;
};

constexpr char kPlanExpected[] =
    "[equivariant_attention] plan: expected the tensors of an equivariant_attention_plan";

// A mix of 64-bit words that every change of one of them changes.
class Fingerprint {
 public:
  void add(uint64_t word) { lanes_[next_++ % lanes_.size()].add(word); }
  void add(const Tensor& tensor) {
    add(static_cast<uint64_t>(tensor.scalar_type()));
    for (const int64_t size : tensor.sizes()) add(static_cast<uint64_t>(size));
    const auto* const bytes = static_cast<const char*>(tensor.const_data_ptr());
    const size_t size = tensor.nbytes(), whole = size / kBlock * kBlock;
    for (size_t at = 0; at < whole; at += kBlock) {
      std::array<uint64_t, kLanes> words;
      std::memcpy(words.data(), bytes + at, kBlock);
      for (size_t lane = 0; lane < kLanes; ++lane) lanes_[lane].add(words[lane]);
    }
    for (size_t at = whole; at < size; at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + at, std::min(sizeof(word), size - at));
      add(word);
    }
  }
  int64_t value() const {
    Lane all;
    for (const Lane& lane : lanes_) all.add(lane.state);
    return static_cast<int64_t>(all.state);
  }

 private:
  static constexpr size_t kLanes = 4, kBlock = kLanes * sizeof(uint64_t);

  struct Lane {
    uint64_t state = 0x9e3779b97f4a7c15U;
    void add(uint64_t word) {
      state = (state ^ word) * 0xbf58476d1ce4e5b9U;
      state ^= state >> 29;
    }
  };

  std::array<Lane, kLanes> lanes_;
  size_t next_ = 0;
};

int64_t fingerprint_of(at::TensorList tensors, at::IntArrayRef numbers) {
  Fingerprint print;
  for (const Tensor& tensor : tensors) {
    TORCH_CHECK_VALUE(tensor.is_cpu() && tensor.is_contiguous(), kPlanExpected,
                      ", contiguous and on the CPU");
    print.add(tensor);
  }
  for (const int64_t number : numbers) print.add(static_cast<uint64_t>(number));
  return print.value();
}

}  // namespace

void check_fingerprint(at::TensorList tensors, at::IntArrayRef numbers) {
  const auto is_fingerprint = [](const Tensor& tensor) {
    return tensor.is_cpu() && tensor.scalar_type() == at::kLong && tensor.numel() == 1;
  };
  TORCH_CHECK_VALUE(!tensors.empty() && is_fingerprint(tensors.back()) &&
                        tensors.back().item<int64_t>() ==
                            fingerprint_of(tensors.slice(0, tensors.size() - 1), numbers),
                    kPlanExpected, " as it made them, got changed ones");
}

std::pair<std::vector<Tensor>, std::vector<int64_t>> flatten(const AttentionPlan& plan) {
  std::vector<int64_t> places(plan.output_rows.size());
  for (size_t place = 0; place < places.size(); ++place) {
    places[plan.output_rows[place]] = static_cast<int64_t>(place);
  }
  std::vector<Tensor> tensors{to_tensor(places)};
  Writer numbers;
  numbers.list(plan.outputs);
  numbers.number(std::ssize(plan.sources));
  for (const AttentionSource& source : plan.sources) {
    numbers.number(source.rows);
    numbers.number(source.columns);
    numbers.number(source.value_column);
    const auto add_gather = [&](const SumPlan& plan) {
      numbers.list(flatten(plan.parts));
      std::vector<Tensor> gather = tensors_of(plan);
      tensors.insert(tensors.end(), gather.begin(), gather.end());
    };
    add_gather(source.gather);
    const SharedColumns& shared = source.shared;
    numbers.list(shared.counts);
    add_gather(shared.gather);
    tensors.push_back(to_tensor(shared.places).view({source.rows, std::ssize(shared.counts)}));
    tensors.push_back(to_tensor(shared.offsets));
    tensors.push_back(to_tensor(shared.rows));
    tensors.push_back(to_tensor(source.nodes).view({-1, source.rows}));
    tensors.push_back(to_tensor(source.graphs));
  }
  numbers.number(std::ssize(plan.relations));
  for (const AttentionRelation& relation : plan.relations) {
    tensors.push_back(to_tensor(relation.key_offsets));
    tensors.push_back(to_tensor(relation.keys));
    tensors.push_back(to_tensor(relation.query_offsets));
    tensors.push_back(to_tensor(relation.queries));
  }
  numbers.number(std::ssize(plan.row_groups));
  for (const RowGroups& groups : plan.row_groups) {
    tensors.push_back(to_tensor(groups.offsets));
    tensors.push_back(to_tensor(groups.rows));
  }
  numbers.number(std::ssize(plan.group_maps));
  for (const auto& map : plan.group_maps) tensors.push_back(to_tensor(map));
  numbers.number(std::ssize(plan.parts));
  for (const AttentionPart& part : plan.parts) {
    numbers.number(part.number);
    numbers.number(part.queries);
    numbers.number(part.keys);
    numbers.number(part.multiplicity);
    numbers.list(part.key_only);
    numbers.number(std::ssize(part.terms));
    for (const AttentionTerm& term : part.terms) {
      numbers.number(term.relation);
      numbers.list(term.query_only);
      std::vector<int64_t> extensions;
      for (const auto& [relation, sign] : term.extensions) {
        extensions.insert(extensions.end(), {relation, sign});
      }
      numbers.list(extensions);
      for (const auto& meetings : {term.queries_meet, term.keys_meet}) {
        numbers.number(std::ssize(meetings));
        for (const TableMeeting& meeting : meetings) {
          numbers.number(meeting.rows);
          std::vector<int64_t> members;
          for (const auto& [relation, sign, groups] : meeting.members) {
            members.insert(members.end(), {relation, sign, groups});
          }
          numbers.list(members);
        }
      }
    }
    tensors.push_back(to_tensor(part.query_weights));
    tensors.push_back(to_tensor(part.key_weights));
    tensors.push_back(to_tensor(part.counts));
  }
  std::vector<int64_t> all = numbers.take();
  tensors.push_back(to_tensor(std::vector<int64_t>{fingerprint_of(tensors, all)}));
  return {std::move(tensors), std::move(all)};
}

PlanTensors PlanTensors::read(at::TensorList tensors, at::IntArrayRef flat) {
  Reader numbers(flat);
  size_t next = 0;
  const auto take = [&](size_t count) {
    TORCH_CHECK_VALUE(next + count <= tensors.size(), kPlanExpected, ", got ", tensors.size(),
                      " tensors");
    next += count;
    return tensors.slice(next - count, count);
  };
  PlanTensors plan;
  plan.output_places = take(1)[0];
  plan.outputs = numbers.list();
  for (int64_t left = numbers.count(); left > 0; --left) {
    SourceTensors source{numbers.number(), numbers.number(), numbers.number(), {}, {}, {}, {}};
    source.gather = {take(kPlanTensors), numbers.list()};
    source.shared.counts = numbers.list();
    source.shared.gather = {take(kPlanTensors), numbers.list()};
    const at::TensorList shared = take(kSharedTensors);
    source.shared.places = shared[0];
    source.shared.offsets = shared[1];
    source.shared.rows = shared[2];
    const at::TensorList own = take(kSourceTensors);
    source.nodes = own[0];
    source.graphs = own[1];
    plan.sources.push_back(std::move(source));
  }
  // What follows has tensors and no numbers of its own.
  for (int64_t left = numbers.number(); left > 0; --left) {
    const at::TensorList own = take(kRelationTensors);
    plan.relations.push_back({own[0], own[1], own[2], own[3]});
  }
  for (int64_t left = numbers.number(); left > 0; --left) {
    const at::TensorList own = take(kRowGroupTensors);
    plan.row_groups.push_back({own[0], own[1]});
  }
  for (int64_t left = numbers.number(); left > 0; --left) {
    plan.group_maps.push_back(take(1)[0]);
  }
  for (int64_t left = numbers.count(); left > 0; --left) {
    PartTensors part{
        numbers.number(), numbers.number(), numbers.number(), numbers.number(), {}, {}, {}, {}, {}};
    part.key_only = numbers.list();
    for (int64_t terms = numbers.count(); terms > 0; --terms) {
      AttentionTerm term{numbers.number(), numbers.list(), {}, {}, {}};
      const std::vector<int64_t> extensions = numbers.list();
      for (size_t e = 1; e < extensions.size(); e += 2) {
        term.extensions.push_back({extensions[e - 1], extensions[e]});
      }
      for (auto* const meetings : {&term.queries_meet, &term.keys_meet}) {
        for (int64_t each = numbers.count(); each > 0; --each) {
          TableMeeting meeting{numbers.number(), {}};
          const std::vector<int64_t> members = numbers.list();
          for (size_t m = 2; m < members.size(); m += 3) {
            meeting.members.push_back({members[m - 2], members[m - 1], members[m]});
          }
          meetings->push_back(std::move(meeting));
        }
      }
      part.terms.push_back(std::move(term));
    }
    const at::TensorList own = take(kPartTensors);
    part.query_weights = own[0];
    part.key_weights = own[1];
    part.counts = own[2];
    plan.parts.push_back(std::move(part));
  }
  take(1);  // the fingerprint
  TORCH_CHECK_VALUE(numbers.done() && next == tensors.size(), Reader::kExpected);
  return plan;
}

}  // namespace nsimplex::equivariant
