import Model
import Testing

@testable import Discovery

@Suite struct InstanceNameTests {
    @Test func `a Flutter instance name that is split at its dots is joined again`() {
        let target = DNSName(plain: "AppReveal-com.example.app._appreveal._tcp.local")

        #expect(
            InstanceName(target: target, of: .appreveal, in: "local")
                == .split(name: Array("AppReveal-com.example.app".utf8))
        )
    }

    @Test func `a name in one label is left to the service browser`() {
        let target = DNSName(
            labels: [Array("AppReveal-com.example.app".utf8)] + DNSName(plain: "_appreveal._tcp.local").labels
        )

        #expect(InstanceName(target: target, of: .appreveal, in: "local") == .wellFormed)
    }

    @Test(arguments: [
        "_appreveal._tcp.local", "x._debug._tcp.local", "a.b._appreveal._tcp.example",
        "_printer._sub._appreveal._tcp.local",
    ])
    func `a target of another type is rejected`(target: String) {
        #expect(InstanceName(target: DNSName(plain: target), of: .appreveal, in: "local") == .otherType)
    }

    @Test func `letters are compared without case`() {
        let target = DNSName(plain: "a.b._AppReveal._TCP.Local")

        #expect(InstanceName(target: target, of: .appreveal, in: "local") == .split(name: Array("a.b".utf8)))
    }
}
