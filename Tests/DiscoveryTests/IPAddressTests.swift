import Testing

@testable import Discovery

@Suite struct IPAddressTests {
    private let local = LocalInterfaces(
        names: [1: "lo", 2: "eth0"],
        networks: [
            .init(interface: 1, address: [127, 0, 0, 1], mask: [255, 0, 0, 0]),
            // The widest network, so that no address below is rejected as off-link.
            .init(interface: 2, address: [10, 99, 0, 1], mask: [0, 0, 0, 0]),
            .init(
                interface: 2,
                address: [0x20, 1] + [UInt8](repeating: 0, count: 13) + [1],
                mask: [UInt8](repeating: 0, count: 16)
            ),
        ]
    )

    @Test(
        arguments: [
            [127, 0, 0, 1], [0, 0, 0, 0], [224, 0, 0, 251], [255, 255, 255, 255],
            [169, 254, 169, 254], [169, 254, 170, 2], [100, 100, 100, 200], [168, 63, 129, 16],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1],
            [0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFB],
            [0xFD, 0, 0x0E, 0xC2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54],
            // NAT64 and 6to4 forms of 169.254.169.254, 127.0.0.1 and the broker's own address.
            [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0, 169, 254, 169, 254],
            [0, 0x64, 0xFF, 0x9B, 0, 1, 127, 0, 0, 0, 1, 0, 0, 0, 0, 0],
            [0x20, 2, 10, 99, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            [10, 99, 0, 1],
        ] as [[UInt8]]
    )
    func `an advertisement for loopback, metadata, multicast, null or own addresses is refused`(bytes: [UInt8]) throws {
        let address = try #require(IPAddress(bytes: bytes))

        #expect(address.refusal(from: 2, local) != nil)
        #expect(address.refusalOfSender(local) != nil)
    }

    @Test func `a sender behind a router is accepted, because the connection proves its address`() throws {
        let narrow = LocalInterfaces(
            names: [2: "eth0"],
            networks: [.init(interface: 2, address: [10, 99, 0, 1], mask: [255, 255, 255, 0])]
        )
        #expect(try #require(IPAddress(numeric: "10.98.0.2")).refusalOfSender(narrow) == nil)
        #expect(try #require(IPAddress(numeric: "2001:db8::1")).refusalOfSender(narrow) == nil)
        #expect(IPAddress(numeric: "fe80::1%eth0") == nil && IPAddress(numeric: "lab.local") == nil)
    }

    @Test func `an advertisement for an address off its link is refused`() throws {
        let narrow = LocalInterfaces(
            names: [2: "eth0", 3: "wlan0"],
            networks: [
                .init(interface: 2, address: [10, 99, 0, 1], mask: [255, 255, 255, 0]),
                .init(interface: 3, address: [10, 98, 0, 1], mask: [255, 255, 255, 0]),
            ]
        )

        #expect(try #require(address(10, 99, 0, 2)).refusal(from: 2, narrow) == nil)
        #expect(
            try #require(address(10, 98, 0, 2)).refusal(from: 2, narrow)?.contains("not on the network link") == true
        )
        #expect(try #require(address(8, 8, 8, 8)).refusal(from: 2, narrow) != nil)
    }

    @Test(arguments: [[127, 0, 0, 1], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]] as [[UInt8]])
    func `an advertisement received over loopback may name a loopback address`(bytes: [UInt8]) throws {
        let address = try #require(IPAddress(bytes: bytes))

        #expect(address.refusal(from: IPAddress.loopbackInterface, local) == nil)
    }

    @Test func `ordinary addresses are allowed and formatted in the usual notation`() throws {
        let ipv4 = try #require(address(192, 168, 1, 20))
        let linkLocal = try #require(address(0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7))

        #expect(ipv4.refusal(from: 2, local) == nil && linkLocal.refusal(from: 2, local) == nil)
        #expect(ipv4.description == "192.168.1.20")
        #expect(linkLocal.description == "fe80::7")
        #expect(IPAddress(bytes: [1, 2, 3]) == nil)
    }

    @Test func `IPv4 ranks before IPv6, and link-local addresses rank last`() throws {
        let order = [
            address(10, 99, 0, 2), address(0xFD, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9),
            address(0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9), address(169, 254, 1, 2),
        ]

        let ranks = try order.map { local.rank(of: try #require($0)) }

        #expect(ranks == ranks.sorted())
        #expect(Set(ranks).count == ranks.count)
    }

    @Test func `the loopback interface of this machine is listed with its network`() throws {
        let local = LocalInterfaces.current()

        #expect(local.names[IPAddress.loopbackInterface] == "lo")
        #expect(local.isOnLink(try #require(address(127, 1, 2, 3)), interface: IPAddress.loopbackInterface))
    }
}
