#include "causal/structure/covariance.h"

namespace nsimplex::causal {

Covariance covariance_of(TableView table) {
  const Matrix centred = table.rowwise() - table.colwise().mean();
  Matrix products = Matrix::Zero(table.cols(), table.cols());
  products.selfadjointView<Eigen::Lower>().rankUpdate(centred.transpose(),
                                                      1 / static_cast<double>(table.rows()));
  products.triangularView<Eigen::StrictlyUpper>() = products.transpose();
  return {std::move(products), table.rows()};
}

}  // namespace nsimplex::causal
