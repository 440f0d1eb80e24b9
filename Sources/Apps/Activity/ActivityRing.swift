/// The newest elements of a growing sequence, numbered from 1. Adding one and finding one take constant time.
struct ActivityRing<Element> {
    let capacity: Int
    /// The number of the newest element; 0 without one.
    private(set) var newest = 0
    private var slots: [Element] = []

    init(capacity: Int) { self.capacity = capacity }

    /// The numbers of the kept elements.
    var numbers: ClosedRange<Int>? { slots.isEmpty ? nil : newest - slots.count + 1...newest }

    /// Adds an element.
    ///
    /// - Returns: The element that made room for it; nil while there is room.
    mutating func append(_ element: Element) -> Element? {
        newest += 1
        guard slots.count == capacity else {
            slots.append(element)
            return nil
        }
        let slot = (newest - 1) % capacity
        let oldest = slots[slot]
        slots[slot] = element
        return oldest
    }

    /// Changes a kept element in place. Does nothing for another number.
    mutating func update<Value>(_ number: Int, _ change: (inout Element) -> Value) -> Value? {
        guard numbers?.contains(number) == true else { return nil }
        return change(&slots[(number - 1) % capacity])
    }

    /// The element with a number; nil if it is not kept.
    subscript(number: Int) -> Element? {
        numbers?.contains(number) == true ? slots[(number - 1) % capacity] : nil
    }

    /// The kept elements, oldest first.
    var elements: [Element] { numbers.map { $0.compactMap { self[$0] } } ?? [] }
}
