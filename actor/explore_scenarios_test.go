package actor

// scenarios are the ones that TestSmallWorlds explores. maxStates bounds the time
// that one takes. minStates makes a scenario fail that explores next to nothing,
// for example because nobody acquires.
var scenarios = []scenario{
	{name: "two writers", locks: []bool{false, false}, idOrder: []int{1, 2}, calls: 1, ticks: 2, maxStates: 60_000, minStates: 30_000},
	{name: "two writers twice", locks: []bool{false, false}, idOrder: []int{1, 2}, calls: 2, maxStates: 100_000, minStates: 5_000},
	{name: "two writers and a kill", locks: []bool{false, false}, idOrder: []int{1, 2}, calls: 1, ticks: 1, kills: 1, maxStates: 40_000, minStates: 30_000},
	{name: "two fenced writers and a kill", locks: []bool{false, false}, fenced: true, idOrder: []int{1, 2}, calls: 1, ticks: 1, kills: 1, maxStates: 40_000, minStates: 30_000},
	{name: "two writers and a freeze", locks: []bool{false, false}, idOrder: []int{1, 2}, calls: 1, freezes: 1, maxStates: 50_000, minStates: 30_000},
	{name: "a writer, a reader and a kill", locks: []bool{false, true}, idOrder: []int{1, 2}, calls: 1, ticks: 1, kills: 1, maxStates: 30_000, minStates: 20_000},
	{name: "a writer and two readers", locks: []bool{false, true, true}, idOrder: []int{1, 2, 3}, calls: 1, maxStates: 30_000, minStates: 20_000},
	{name: "two writers and a reader", locks: []bool{false, false, true}, idOrder: []int{1, 2, 3}, calls: 1, helloFirst: true, maxStates: 150_000, minStates: 100_000},
	{name: "three writers", locks: []bool{false, false, false}, idOrder: []int{1, 2, 3}, calls: 1, maxStates: 40_000, minStates: 30_000},
	{name: "a writer and 4.1", locks: []bool{false}, peerVersion: 41, idOrder: []int{1, 2}, calls: 1, ticks: 1, maxStates: 100_000, minStates: 10_000},
	{name: "a writer and 4.1 of a lower id", locks: []bool{false}, peerVersion: 41, idOrder: []int{2, 1}, calls: 1, ticks: 1, maxStates: 100_000, minStates: 10_000},
	{name: "a writer and 4.1 and a kill", locks: []bool{false}, peerVersion: 41, idOrder: []int{1, 2}, calls: 1, kills: 1, maxStates: 60_000, minStates: 40_000},
	{name: "a writer and 4.1 of a lower id twice", locks: []bool{false}, peerVersion: 41, idOrder: []int{2, 1}, calls: 2, ticks: 1, maxStates: 40_000, minStates: 30_000},
	{name: "a reader and 4.1", locks: []bool{true}, peerVersion: 41, idOrder: []int{1, 2}, calls: 1, ticks: 1, maxStates: 100_000, minStates: 1_000},
	{name: "a writer and 4.2", locks: []bool{false}, peerVersion: 42, idOrder: []int{1, 2}, calls: 1, ticks: 1, maxStates: 30_000, minStates: 20_000},
	{name: "a writer and 4.2 of a lower id", locks: []bool{false}, peerVersion: 42, idOrder: []int{2, 1}, calls: 1, ticks: 1, maxStates: 30_000, minStates: 20_000},
	{name: "a writer and 4.2 of a lower id twice", locks: []bool{false}, peerVersion: 42, idOrder: []int{2, 1}, calls: 2, ticks: 1, maxStates: 30_000, minStates: 20_000},
}
