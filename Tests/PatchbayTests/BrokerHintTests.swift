import Testing

@testable import patchbay

@Suite struct BrokerHintTests {
    @Test(arguments: [
        ("patchbay tools shop", "patchbay tools --broker lab shop"), ("patchbay list", "patchbay list --broker lab"),
        (
            "`patchbay tunnels rm t1` or `patchbay leases`",
            "`patchbay tunnels rm --broker lab t1` or `patchbay leases --broker lab`"
        ),
        ("patchbay lease shop --wait 5m -- COMMAND", "patchbay lease --broker lab shop --wait 5m -- COMMAND"),
    ])
    func `a hint names the broker of the command`(hint: String, completed: String) {
        #expect(BrokerHint(broker: "lab").completed(hint) == completed)
        #expect(BrokerHint(broker: nil).completed(hint) == hint)
    }

    @Test(arguments: [
        "patchbay join -, with the whole pairing string", "patchbay leave lab", "patchbay lease --help",
        "ask an owner for another invite: patchbay pair --scope shell", "start it with `patchbayd`", "patchbay brokers",
        "patchbay list --broker lab",
    ])
    func `a command that the broker does not answer stays unchanged`(hint: String) {
        #expect(BrokerHint(broker: "lab").completed(hint) == hint)
    }

    @Test func `an owner's command runs through ssh, or on the broker's machine`() {
        let hint = "patchbay approve shop"
        #expect(BrokerHint(broker: "ssh://anna@lab").completed(hint) == "patchbay approve --broker ssh://anna@lab shop")
        #expect(BrokerHint(broker: "lab").completed(hint) == "on the broker's machine: patchbay approve shop")
        #expect(BrokerHint(broker: "127.0.0.1:7282").completed(hint) == hint)
    }

    @Test(arguments: [
        ("list --broker lab", "lab"), ("list --broker=lab", "lab"), ("list", nil), ("lease x -- y --broker lab", nil),
        ("list --broker", nil),
    ])
    func `the broker comes from the command line`(line: String, broker: String?) {
        #expect(BrokerHint(arguments: line.split(separator: " ").map(String.init)).broker == broker)
    }
}
