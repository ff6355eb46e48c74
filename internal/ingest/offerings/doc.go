// Package offerings keeps what each pool can buy: the provider's lists, numbered and shared, what is short of supply or
// reserved, what real nodes have taught about their types, and what became of the latest launches.
//
// Floor 3: it takes in what the provider says, has no lock and no clock, and asks nobody.
package offerings
