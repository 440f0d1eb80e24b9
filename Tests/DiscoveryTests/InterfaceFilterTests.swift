import Testing

@testable import Discovery

@Suite struct InterfaceFilterTests {
    @Test(arguments: [
        ("docker0", false), ("veth12ab", false), ("eth0", true), ("wlan0", true), ("br-docker", true), ("lo", true),
    ])
    func `container interfaces are excluded by default`(name: String, isAccepted: Bool) {
        #expect(DiscoveryOptions().interfaces.accepts(name) == isAccepted)
    }

    @Test(arguments: [
        ("eth0", "eth?", true), ("eth10", "eth?", false), ("enp3s0", "e*s0", true), ("enp3s1", "e*s0", false),
        ("a", "", false), ("", "*", true), ("abcabd", "*abd", true), ("abc", "***", true),
    ])
    func `globs match as in a shell`(name: String, glob: String, fits: Bool) {
        #expect(InterfaceFilter(allowed: [glob], denied: []).accepts(name) == fits)
    }

    @Test func `a denied glob takes precedence over an allowed one`() {
        let filter = InterfaceFilter(allowed: ["eth*"], denied: ["eth1"])

        #expect(filter.accepts("eth0") && !filter.accepts("eth1") && !filter.accepts("wlan0"))
    }

    @Test func `a pattern with many wildcards is matched quickly`() {
        let filter = InterfaceFilter(allowed: [String(repeating: "a*", count: 40) + "b"], denied: [])

        let took = ContinuousClock().measure { #expect(!filter.accepts(String(repeating: "a", count: 300))) }

        #expect(took < .seconds(1))
    }
}
