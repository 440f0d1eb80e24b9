import Testing

@testable import Discovery

@Suite struct NetworkAddressTests {
    @Test(
        arguments: [
            [127, 0, 0, 1], [0, 0, 0, 0], [224, 0, 0, 251], [255, 255, 255, 255], [169, 254, 169, 254],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1],
            [0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFB],
            [0xFD, 0, 0x0E, 0xC2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54],
        ] as [[UInt8]]
    )
    func `an advert from the LAN cannot lead to loopback, metadata, multicast or nowhere`(bytes: [UInt8]) throws {
        let address = try #require(NetworkAddress(bytes: bytes))

        #expect(!address.isDialable(from: 2))
    }

    @Test(arguments: [[127, 0, 0, 1], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]] as [[UInt8]])
    func `what was advertised over loopback may lead to loopback`(bytes: [UInt8]) throws {
        let address = try #require(NetworkAddress(bytes: bytes))

        #expect(address.isDialable(from: NetworkAddress.loopbackInterface))
    }

    @Test func `ordinary addresses are fine and written as people write them`() throws {
        let ipv4 = try #require(address(192, 168, 1, 20))
        let linkLocal = try #require(address(0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7))

        #expect(ipv4.isDialable(from: 2) && linkLocal.isDialable(from: 2))
        #expect(ipv4.description == "192.168.1.20")
        #expect(linkLocal.description == "fe80::7")
        #expect(NetworkAddress(bytes: [1, 2, 3]) == nil)
    }

    @Test func `what is on the link comes before what needs a router, and link-local after both families`() throws {
        let local = LocalInterfaces(
            names: [2: "eth0"],
            networks: [
                .init(interface: 2, address: [10, 99, 0, 1], mask: [255, 255, 255, 0]),
                .init(
                    interface: 2,
                    address: [0xFD, 1] + [UInt8](repeating: 0, count: 14),
                    mask: [UInt8](repeating: 0xFF, count: 8) + [UInt8](repeating: 0, count: 8)
                ),
            ]
        )
        let order = [
            address(10, 99, 0, 2), address(0xFD, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9),
            address(0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9), address(10, 9, 9, 9),
            address(0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9),
        ]

        let ranks = try order.map { local.rank(of: try #require($0), interface: 2) }

        #expect(ranks == ranks.sorted())
        #expect(Set(ranks).count == ranks.count)
        // On another interface the same address is not on the link.
        #expect(local.rank(of: try #require(address(10, 99, 0, 2)), interface: 3) == 4)
    }

    @Test func `this machine's loopback is seen with its network`() throws {
        let local = LocalInterfaces.current()

        #expect(local.names[NetworkAddress.loopbackInterface] == "lo")
        #expect(local.isOnLink(try #require(address(127, 1, 2, 3)), interface: NetworkAddress.loopbackInterface))
    }
}
