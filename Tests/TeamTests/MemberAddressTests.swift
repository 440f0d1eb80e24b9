import Discovery
import Model
import Testing

@testable import Team

/// The addresses that a member of the team may have.
@Suite struct MemberAddressTests {
    private func settings(_ addresses: String...) -> TeamHostSettings {
        var configuration = TeamConfiguration()
        configuration.addresses = addresses.compactMap { TeamAddress($0) }
        return TeamHostSettings(
            configuration: configuration,
            machine: "lab1",
            interfaces: InterfaceFilter(allowed: [], denied: [])
        )
    }

    @Test(arguments: [
        "127.0.0.1", "127.8.9.1", "::1", "0.0.0.0", "::", "224.0.0.251", "255.255.255.255", "ff02::fb",
        "169.254.169.254",
        "fd00:ec2::254", "::ffff:127.0.0.1", "::ffff:10.0.0.8", "64:ff9b::7f00:1", "lab2.example",
    ]) func `an address of this machine, of many machines or of a cloud provider is refused`(address: String) {
        #expect(settings("10.0.0.7").refusal(ofMemberAt: address)?.contains("another host cannot have") == true)
    }

    @Test(arguments: ["203.0.113.8", "2001:db8::8"]) func `an address of another machine is dialled`(address: String) {
        #expect(settings("10.0.0.7").refusal(ofMemberAt: address) == nil)
    }

    @Test func `a team on one machine uses loopback addresses`() {
        #expect(settings("127.0.0.1").refusal(ofMemberAt: "127.0.0.1") == nil)
        #expect(settings("127.0.0.1").refusal(ofMemberAt: "169.254.169.254") != nil)
    }
}
