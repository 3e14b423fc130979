package console

import (
	"fmt"
	"math"

	"github.com/atoll-run/atoll/internal/errhint"
)

// CheckBudget refuses what is no amount of money.
func CheckBudget(dollars float64) error {
	if dollars < 0 || math.IsNaN(dollars) || dollars > 1e6 {
		return errhint.With(fmt.Errorf("--budget %v is not an amount of money", dollars), "write dollars, such as 0.50")
	}
	return nil
}

// MicroDollars is a budget in the unit of the ledger.
func MicroDollars(dollars float64) int64 {
	if dollars > 0 && dollars < 1e-6 {
		return 1 // 0 would be no limit
	}
	return int64(math.Round(dollars * 1e6))
}
