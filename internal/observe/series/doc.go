// Package series makes metrics and has the contract's words for their labels.
//
// Floor 3: for the packages of observe that count and measure.
package series
