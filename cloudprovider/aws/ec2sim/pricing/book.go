package pricing

import "sync"

// Prices gives what an instance costs in an hour; false if it isn't sold.
type Prices interface {
	OnDemand(kind string) (float64, bool)
	Spot(kind, zone string) (float64, bool)
}

// Book is a table of prices in which on-demand prices can be changed.
type Book struct {
	Prices

	mu      sync.Mutex
	changed map[string]float64
}

// NewBook makes a book on top of a table.
func NewBook(table Prices) *Book { return &Book{Prices: table, changed: map[string]float64{}} }

// OnDemand is the price of a type.
func (b *Book) OnDemand(kind string) (float64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if dollars, ok := b.changed[kind]; ok {
		return dollars, true
	}
	return b.Prices.OnDemand(kind)
}

// Set changes the on-demand price of a type.
func (b *Book) Set(kind string, dollars float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed[kind] = dollars
}
