import Testing

@testable import Discovery

@Suite struct MachineTableTests {
    private let phone = MachineKey(interface: 2, name: "phone.local")
    private let tablet = MachineKey(interface: 2, name: "tablet.local")

    @Test func `a host is followed for its first user and no longer after its last`() {
        var hosts = MachineTable(limit: 1)
        #expect(hosts.addUser(key("a"), of: phone, isSplit: false) == true)
        #expect(hosts.addUser(key("b"), of: phone, isSplit: false) == false)
        #expect(hosts.isFull && hosts.users(of: phone) == [key("a"), key("b")])

        #expect(hosts.removeUser(key("a"), of: phone) == false)
        #expect(hosts.removeUser(key("b"), of: phone) == true)
        #expect(hosts.keys.isEmpty && hosts.followedCount == 0)
    }

    @Test func `above the limit only the host of a split instance name is followed`() {
        var hosts = MachineTable(limit: 0)
        #expect(hosts.addUser(key("a"), of: phone, isSplit: false) == false)
        #expect(hosts.isUnfollowed(phone))
        #expect(hosts.addUser(key("b"), of: tablet, isSplit: true) == true)
        #expect(!hosts.isUnfollowed(tablet))

        #expect(hosts.removeUser(key("a"), of: phone) == false)
        #expect(hosts.followedCount == 1)
    }

    @Test func `an address stays until every IP version that reported it withdraws it`() throws {
        var hosts = MachineTable(limit: 1)
        let ten = try #require(address(10, 0, 0, 5))
        #expect(hosts.setAddress(ten, of: phone, transport: 0, isPresent: true).isEmpty, "the host is unknown")
        _ = hosts.addUser(key("a"), of: phone, isSplit: false)

        #expect(hosts.setAddress(ten, of: phone, transport: 0, isPresent: true) == [key("a")])
        _ = hosts.setAddress(ten, of: phone, transport: 1, isPresent: true)
        _ = hosts.setAddress(ten, of: phone, transport: 0, isPresent: false)
        #expect(hosts.addresses(of: phone) == [ten])

        _ = hosts.setAddress(ten, of: phone, transport: 1, isPresent: false)
        #expect(hosts.addresses(of: phone).isEmpty)
    }
}
