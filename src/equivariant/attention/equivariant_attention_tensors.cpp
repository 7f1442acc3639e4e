// Conversion of plans of attention to lists of tensors and numbers, and back.

#include <ATen/ATen.h>

#include <array>
#include <cstring>

#include "equivariant/attention/equivariant_attention_call.h"
#include "equivariant/linear/equivariant_plan.h"
#include "support/transforms.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;

constexpr char kPartsExpected[] =
    "[equivariant_attention] parts: expected those of an equivariant_attention_plan";
constexpr char kPlanExpected[] =
    "[equivariant_attention] plan: expected the tensors of an equivariant_attention_plan";

// A hash of 64-bit words. A change of one word always changes it.
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

// Visits the whole plan in the order in which operators take it. No other code depends on this
// order.
template <class Plan, class Archive>
void visit_plan(Plan& plan, Archive& archive) {
  archive.array(plan.output_places);
  archive.list(plan.outputs);
  archive.each(plan.sources, [&](auto& source) {
    archive.number(source.rows);
    archive.number(source.columns);
    archive.number(source.value_column);
    archive.gather(source.gather);
    archive.list(source.shared.counts);
    archive.gather(source.shared.gather);
    archive.array(source.shared.places, {source.rows, std::ssize(source.shared.counts)});
    archive.array(source.shared.offsets);
    archive.array(source.shared.rows);
    archive.array(source.nodes, {-1, source.rows});
    archive.array(source.graphs);
  });
  archive.each(plan.relations, [&](auto& relation) {
    archive.array(relation.key_offsets);
    archive.array(relation.keys);
    archive.array(relation.query_offsets);
    archive.array(relation.queries);
  });
  archive.each(plan.row_groups, [&](auto& groups) {
    archive.array(groups.offsets);
    archive.array(groups.rows);
  });
  archive.each(plan.group_maps, [&](auto& map) { archive.array(map); });
  archive.each(plan.parts, [&](auto& part) {
    archive.number(part.number);
    archive.number(part.queries);
    archive.number(part.keys);
    archive.number(part.multiplicity);
    archive.list(part.key_only);
    archive.each(part.terms, [&](auto& term) {
      archive.number(term.relation);
      archive.list(term.query_only);
      archive.rows(term.extensions, &AttentionTerm::Extension::relation,
                   &AttentionTerm::Extension::sign);
      for (auto* const meetings : {&term.queries_meet, &term.keys_meet}) {
        archive.each(*meetings, [&](auto& meeting) {
          archive.number(meeting.rows);
          archive.rows(meeting.members, &TableMeeting::Member::relation,
                       &TableMeeting::Member::sign, &TableMeeting::Member::groups);
        });
      }
    });
    archive.array(part.query_weights);
    archive.array(part.key_weights);
    archive.array(part.counts);
  });
}

// Lists are preceded by their lengths.
class Writer {
 public:
  void number(int64_t number) { numbers.push_back(number); }
  void list(const std::vector<int64_t>& own) {
    number(std::ssize(own));
    numbers.insert(numbers.end(), own.begin(), own.end());
  }
  template <class T>
  void array(const std::vector<T>& values) {
    tensors.push_back(to_tensor(values));
  }
  template <class T>
  void array(const std::vector<T>& values, at::IntArrayRef shape) {
    tensors.push_back(to_tensor(values).view(shape));
  }
  void gather(const SumPlan& plan) {
    list(flatten(plan.parts));
    const std::vector<Tensor> own = tensors_of(plan);
    tensors.insert(tensors.end(), own.begin(), own.end());
  }
  template <class Item, class Visit>
  void each(const std::vector<Item>& items, Visit&& visit) {
    number(std::ssize(items));
    for (const Item& item : items) visit(item);
  }
  template <class Item, class... Fields>
  void rows(const std::vector<Item>& items, Fields... fields) {
    number(std::ssize(items) * static_cast<int64_t>(sizeof...(fields)));
    for (const Item& item : items) (number(item.*fields), ...);
  }

  std::vector<Tensor> tensors;
  std::vector<int64_t> numbers;
};

class Reader {
 public:
  Reader(at::TensorList tensors, at::IntArrayRef numbers) : tensors_(tensors), numbers_(numbers) {}

  void number(int64_t& to) { to = next(); }
  void list(std::vector<int64_t>& to) {
    const int64_t length = next();
    TORCH_CHECK_VALUE(length >= 0 && static_cast<size_t>(length) <= numbers_.size() - next_number_,
                      kPartsExpected);
    to = numbers_.slice(next_number_, length).vec();
    next_number_ += length;
  }
  void array(Tensor& to) { to = take(1)[0]; }
  void array(Tensor& to, at::IntArrayRef /*shape*/) { array(to); }
  void gather(InTensors::Gather& to) {
    list(to.parts);
    to.plan = take(kPlanTensors);
  }
  // Every item takes a number or a tensor, so a damaged plan cannot make this loop endless.
  template <class Item, class Visit>
  void each(std::vector<Item>& items, Visit&& visit) {
    for (int64_t left = next(); left > 0; --left) visit(items.emplace_back());
  }
  template <class Item, class... Fields>
  void rows(std::vector<Item>& items, Fields... fields) {
    std::vector<int64_t> flat;
    list(flat);
    for (auto at = flat.begin(); flat.end() - at >= std::ptrdiff_t{sizeof...(fields)};) {
      Item& item = items.emplace_back();
      ((item.*fields = *at++), ...);
    }
  }
  // Whether everything except the fingerprint was read.
  bool is_done() const {
    return next_number_ == numbers_.size() && next_tensor_ + 1 == tensors_.size();
  }

 private:
  int64_t next() {
    TORCH_CHECK_VALUE(next_number_ < numbers_.size(), kPartsExpected);
    return numbers_[next_number_++];
  }
  at::TensorList take(size_t count) {
    TORCH_CHECK_VALUE(next_tensor_ + count <= tensors_.size(), kPlanExpected, ", got ",
                      tensors_.size(), " tensors");
    next_tensor_ += count;
    return tensors_.slice(next_tensor_ - count, count);
  }

  at::TensorList tensors_;
  at::IntArrayRef numbers_;
  size_t next_tensor_ = 0, next_number_ = 0;
};

}  // namespace

void check_fingerprint(at::TensorList tensors, at::IntArrayRef numbers) {
  const BelowTransforms below;
  std::vector<Tensor> plain;
  for (const Tensor& tensor : tensors) {
    TORCH_CHECK_VALUE(!is_mapped(tensor), kPlanExpected,
                      ", the same for all that vmap maps over, got a dimension of vmap");
    plain.push_back(below_transforms(tensor).contiguous());
  }
  const auto is_fingerprint = [](const Tensor& tensor) {
    return tensor.is_cpu() && tensor.scalar_type() == at::kLong && tensor.numel() == 1;
  };
  TORCH_CHECK_VALUE(
      !plain.empty() && is_fingerprint(plain.back()) &&
          plain.back().item<int64_t>() ==
              fingerprint_of(at::TensorList(plain).slice(0, plain.size() - 1), numbers),
      kPlanExpected, " as it made them, got changed ones");
}

std::pair<std::vector<Tensor>, std::vector<int64_t>> flatten(const AttentionPlan& plan) {
  Writer writer;
  visit_plan(plan, writer);
  writer.array(std::vector<int64_t>{fingerprint_of(writer.tensors, writer.numbers)});
  return {std::move(writer.tensors), std::move(writer.numbers)};
}

PlanTensors read_plan(at::TensorList tensors, at::IntArrayRef numbers) {
  Reader reader(tensors, numbers);
  PlanTensors plan;
  visit_plan(plan, reader);
  TORCH_CHECK_VALUE(reader.is_done(), kPartsExpected);
  return plan;
}

}  // namespace nsimplex::equivariant
