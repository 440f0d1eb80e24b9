import Model
import Testing

/// The rule that every address of a network needs an approval, unless somebody with rights chose it.
@Suite struct SightingTests {
    private static let nameless = Route.network(NetworkRoute(address: "192.168.1.20", port: 9_876))
    private static let named = Route.network(
        NetworkRoute(address: "192.168.1.21", port: 9_876, machine: SanitizedText("phone.local"))
    )

    private func sighting(of source: Sighting.Source, _ routes: [Route]) -> Sighting {
        Sighting(
            id: Sighting.ID(source: source, key: "one"),
            kind: .mcp,
            app: SanitizedText("com.example.shop"),
            appIsBundleID: true,
            name: SanitizedText("Shop"),
            routes: routes
        )
    }

    @Test(arguments: [Sighting.Source.bonjour, .usbmuxd, .adb, .debuglink])
    func `an announced address without a host is no route, because nobody could approve it`(_ source: Sighting.Source) {
        let sighting = sighting(of: source, [Self.nameless, Self.named])
        #expect(sighting.routes == [Self.named])
    }

    @Test(arguments: [Sighting.Source.config, .registration])
    func `an address that somebody with rights chose needs no host`(_ source: Sighting.Source) {
        #expect(sighting(of: source, [Self.nameless]).routes == [Self.nameless])
    }
}
