import Testing

@testable import Discovery

@Suite struct MachineTableTests {
    private let phone = MachineKey(interface: 2, name: "phone.local")
    private let tablet = MachineKey(interface: 2, name: "tablet.local")

    @Test func `a machine is followed for its first user and no longer after its last`() {
        var machines = MachineTable(limit: 1)
        #expect(machines.addUser(key("a"), of: phone, isSplit: false) == true)
        #expect(machines.addUser(key("b"), of: phone, isSplit: false) == false)
        #expect(machines.isFull && machines.users(of: phone) == [key("a"), key("b")])

        #expect(machines.removeUser(key("a"), of: phone) == false)
        #expect(machines.removeUser(key("b"), of: phone) == true)
        #expect(machines.keys.isEmpty && machines.followedCount == 0)
    }

    @Test func `above the limit only the machine of a split instance name is followed`() {
        var machines = MachineTable(limit: 0)
        #expect(machines.addUser(key("a"), of: phone, isSplit: false) == false)
        #expect(machines.isUnfollowed(phone))
        #expect(machines.addUser(key("b"), of: tablet, isSplit: true) == true)
        #expect(!machines.isUnfollowed(tablet))

        #expect(machines.removeUser(key("a"), of: phone) == false)
        #expect(machines.followedCount == 1)
    }

    @Test func `an address stays until every IP version that reported it withdraws it`() throws {
        var machines = MachineTable(limit: 1)
        let ten = try #require(address(10, 0, 0, 5))
        #expect(machines.setAddress(ten, of: phone, transport: 0, isPresent: true).isEmpty, "the machine is unknown")
        _ = machines.addUser(key("a"), of: phone, isSplit: false)

        #expect(machines.setAddress(ten, of: phone, transport: 0, isPresent: true) == [key("a")])
        _ = machines.setAddress(ten, of: phone, transport: 1, isPresent: true)
        _ = machines.setAddress(ten, of: phone, transport: 0, isPresent: false)
        #expect(machines.addresses(of: phone) == [ten])

        _ = machines.setAddress(ten, of: phone, transport: 1, isPresent: false)
        #expect(machines.addresses(of: phone).isEmpty)
    }
}
