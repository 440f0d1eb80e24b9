/// Interprets an input as a sequence of choices, so that a fuzzer or a seeded generator controls them by changing
/// bytes.
///
/// After the end of the input every choice is the first one.
struct Choices {
    private var rest: ArraySlice<UInt8>

    init(_ input: [UInt8]) { rest = input[...] }

    var isEmpty: Bool { rest.isEmpty }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    /// Returns a number from 0 to below the limit, which is at most 65,536.
    mutating func number(below limit: Int) -> Int { (Int(byte()) << 8 | Int(byte())) % limit }

    mutating func one<Element>(of elements: [Element]) -> Element { elements[number(below: elements.count)] }

    mutating func letters(_ count: Int, of alphabet: [UInt8]) -> String {
        String(decoding: (0..<count).map { _ in alphabet[Int(byte()) % alphabet.count] }, as: UTF8.self)
    }

    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in byte() } }

    /// Returns bytes whose count is the next byte.
    mutating func run() -> [UInt8] { bytes(Int(byte())) }

    /// Returns the unused rest of the input.
    mutating func remainder() -> [UInt8] {
        defer { rest = [] }
        return Array(rest)
    }

    /// Bytes with a special meaning for parsers, and characters that combine with their neighbors.
    private static let spice: [[UInt8]] = [
        [0], [10], [13, 10], [0x1B], [0x20], [0x22], [0x2B], [0x2D], [0x2E], [0x30], [0x3A], [0x3D], [0x5B], [0x5D],
        [0x5F], [0x7F], [0xFF], Array("\u{301}".utf8), Array("\u{600}".utf8), Array("\u{200D}".utf8),
        Array("\u{E9}".utf8), Array("\u{1F600}".utf8), Array("pb".utf8), Array("PATCHBAY:".utf8),
    ]

    /// Makes one change: replaces, inserts, deletes, repeats, swaps or truncates bytes.
    mutating func edit(_ bytes: inout [UInt8]) {
        guard !bytes.isEmpty else { return bytes = run() }
        let place = number(below: bytes.count)
        let end = min(bytes.count, place + 1 + number(below: 16))
        switch number(below: 8) {
        case 0: bytes[place] = byte()
        case 1: bytes[place] ^= 1 << (byte() & 7)
        case 2: bytes.insert(byte(), at: place)
        case 3: bytes.insert(contentsOf: one(of: Self.spice), at: place)
        case 4: bytes.insert(contentsOf: bytes[place..<end], at: place)
        case 5: bytes.removeSubrange(place..<end)
        case 6: bytes.swapAt(place, number(below: bytes.count))
        default: bytes.removeSubrange(place...)
        }
    }
}
