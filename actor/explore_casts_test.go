package actor

// casts are the small worlds. Their numbers of states are what they are; the
// lower bounds are there lest an exploration ends before it has begun.
var casts = []cast{
	{name: "two writers", locks: []bool{false, false}, order: []int{1, 2}, calls: 1, ticks: 2, most: 60_000, least: 30_000},
	{name: "two writers twice", locks: []bool{false, false}, order: []int{1, 2}, calls: 2, most: 100_000, least: 5_000},
	{name: "two writers and a kill", locks: []bool{false, false}, order: []int{1, 2}, calls: 1, ticks: 1, kills: 1, most: 40_000, least: 30_000},
	{name: "two fenced writers and a kill", locks: []bool{false, false}, fenced: true, order: []int{1, 2}, calls: 1, ticks: 1, kills: 1, most: 40_000, least: 30_000},
	{name: "two writers and a freeze", locks: []bool{false, false}, order: []int{1, 2}, calls: 1, freezes: 1, most: 50_000, least: 30_000},
	{name: "a writer, a reader and a kill", locks: []bool{false, true}, order: []int{1, 2}, calls: 1, ticks: 1, kills: 1, most: 30_000, least: 20_000},
	{name: "a writer and two readers", locks: []bool{false, true, true}, order: []int{1, 2, 3}, calls: 1, most: 30_000, least: 20_000},
	{name: "two writers and a reader", locks: []bool{false, false, true}, order: []int{1, 2, 3}, calls: 1, brief: true, most: 150_000, least: 100_000},
	{name: "three writers", locks: []bool{false, false, false}, order: []int{1, 2, 3}, calls: 1, most: 40_000, least: 30_000},
	{name: "a writer and 4.1", locks: []bool{false}, peer: 41, order: []int{1, 2}, calls: 1, ticks: 1, most: 100_000, least: 10_000},
	{name: "a writer and 4.1 of a lower id", locks: []bool{false}, peer: 41, order: []int{2, 1}, calls: 1, ticks: 1, most: 100_000, least: 10_000},
	{name: "a writer and 4.1 and a kill", locks: []bool{false}, peer: 41, order: []int{1, 2}, calls: 1, kills: 1, most: 60_000, least: 40_000},
	{name: "a writer and 4.1 of a lower id twice", locks: []bool{false}, peer: 41, order: []int{2, 1}, calls: 2, ticks: 1, most: 40_000, least: 30_000},
	{name: "a reader and 4.1", locks: []bool{true}, peer: 41, order: []int{1, 2}, calls: 1, ticks: 1, most: 100_000, least: 1_000},
	{name: "a writer and 4.2", locks: []bool{false}, peer: 42, order: []int{1, 2}, calls: 1, ticks: 1, most: 30_000, least: 20_000},
	{name: "a writer and 4.2 of a lower id", locks: []bool{false}, peer: 42, order: []int{2, 1}, calls: 1, ticks: 1, most: 30_000, least: 20_000},
	{name: "a writer and 4.2 of a lower id twice", locks: []bool{false}, peer: 42, order: []int{2, 1}, calls: 2, ticks: 1, most: 30_000, least: 20_000},
}
