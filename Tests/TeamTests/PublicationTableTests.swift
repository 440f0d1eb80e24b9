import Testing

@testable import Team

@Suite struct PublicationTableTests {
    private static let lease = SessionLease(id: 7, generation: 1)
    private static let later = SessionLease(id: 8, generation: 2)

    /// A table that has published `keys` with the value 1.
    private func published(_ keys: String...) -> PublicationTable {
        var table = PublicationTable()
        for key in keys { table.set(key, to: [1]) }
        table.begin(with: Self.lease, existing: [])
        while let writes = table.nextWrites() { table.acknowledge(writes) }
        return table
    }

    private func put(_ key: String, _ value: UInt8, _ lease: SessionLease = lease) -> TeamStoreWrite {
        .put(key: key, value: [value], sessionLease: lease.id)
    }

    @Test func `nothing is written before the publication begins`() {
        var table = PublicationTable()
        table.set("a", to: [1])

        #expect(table.nextWrites() == nil)
    }

    @Test func `the publication writes what is wanted, and deletes what an earlier process left`() {
        var table = PublicationTable()
        table.set("a", to: [1])
        table.set("b", to: [1])

        table.begin(with: Self.lease, existing: ["b", "z"])

        #expect(table.nextWrites() == [put("a", 1), put("b", 1), .delete(key: "z")])
    }

    @Test func `only a changed value is written`() {
        var table = published("a", "b")

        table.set("a", to: [1])
        #expect(table.nextWrites() == nil)
        table.set("a", to: [2])
        #expect(table.nextWrites() == [put("a", 2)])
    }

    @Test func `a value that changes and changes back is not written`() {
        var table = published("a")

        table.set("a", to: [2])
        table.set("a", to: [1])

        #expect(table.nextWrites() == nil)
    }

    @Test func `a key that comes and goes between two writes is not written`() {
        var table = published("a")

        table.set("b", to: [1])
        table.set("b", to: nil)

        #expect(table.nextWrites() == nil)
    }

    @Test func `a change during a write is in the next one`() {
        var table = published("a")
        table.set("a", to: [2])
        let writes = table.nextWrites()

        table.set("a", to: [1])
        table.acknowledge(writes ?? [])

        #expect(table.nextWrites() == [put("a", 1)])
    }

    @Test func `writes are in batches of 100`() {
        var table = PublicationTable()
        for number in 0..<250 { table.set("\(number)", to: [1]) }
        table.begin(with: Self.lease, existing: [])

        var sizes: [Int] = []
        while let writes = table.nextWrites() {
            sizes.append(writes.count)
            table.acknowledge(writes)
        }

        #expect(sizes == [100, 100, 50])
    }

    @Test func `a failed write is repeated, even if its value has changed back`() {
        var table = published("a")
        table.set("a", to: [2])
        table.fail(table.nextWrites() ?? [])

        table.set("a", to: [1])

        #expect(table.nextWrites() == [put("a", 1)])
    }

    @Test func `a failed write of a key that is gone is followed by its deletion`() {
        var table = published()
        table.set("a", to: [1])
        table.fail(table.nextWrites() ?? [])

        table.set("a", to: nil)

        #expect(table.nextWrites() == [.delete(key: "a")])
    }

    @Test func `a new lease writes everything again`() {
        var table = published("a", "b")
        table.set("b", to: nil)

        table.begin(with: Self.later, existing: ["a", "b"])

        #expect(table.nextWrites() == [.delete(key: "b"), put("a", 1, Self.later)])
    }
}
