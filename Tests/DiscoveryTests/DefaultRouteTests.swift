import Testing

@testable import Discovery

@Suite struct DefaultRouteTests {
    private static let head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"

    @Test func `the default route with the lowest metric counts`() {
        let table =
            Self.head + """
                wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
                eth0\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
                vpn0\t00000000\t00000000\t0001\t0\t0\t50\t00000080\t0\t0\t0
                eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0

                """

        #expect(DefaultRoute.interface(in: table) == "eth0")
    }

    @Test(arguments: ["", head, head + "eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n", head + "eth0\n"])
    func `a machine may have no default route`(table: String) { #expect(DefaultRoute.interface(in: table) == nil) }
}
