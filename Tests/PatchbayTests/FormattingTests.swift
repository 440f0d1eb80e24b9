import FoundationEssentials
import Model
import Testing

@testable import patchbay

@Suite struct FormattingTests {
    @Test(arguments: [
        (0.5, "now"), (3, "3 s ago"), (125, "2 min ago"), (7_300, "2 h ago"), (200_000, "2 d ago"), (-5, "now"),
    ])
    func `an age is formatted in its largest whole unit`(seconds: Double, text: String) {
        #expect(Formatting.ago(SampleEndpoints.date, now: SampleEndpoints.date.addingTimeInterval(seconds)) == text)
    }

    @Test(arguments: [
        (-1.0, "0 s"), (59.5, "59 s"), (59.99, "1 min"), (3_500.0, "58 min"), (3_598.0, "1 h"), (28_500.0, "7 h"),
        (28_795.0, "8 h"), (86_300.0, "1 d"), (2_591_940.0, "30 d"),
    ])
    func `more than 95 percent of a unit count as a whole one`(seconds: Double, text: String) {
        #expect(Formatting.duration(seconds) == text)
    }

    @Test(arguments: [
        (0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (999_949, "999.9 kB"), (999_951, "1.0 MB"),
        (1_550_000_000, "1.6 GB"),
    ])
    func `bytes are formatted in decimal units`(count: UInt64, text: String) {
        #expect(Formatting.bytes(count) == text)
    }

    @Test func `an address is formatted in the form that other programs accept`() {
        #expect(Formatting.address(.tcp(host: "::1", port: 80)) == "[::1]:80")
        #expect(Formatting.address(.tcp(host: "127.0.0.1", port: 80)) == "127.0.0.1:80")
        #expect(Formatting.address(.unix(path: "/tmp/x")) == "/tmp/x")
    }

    @Test func `configured endpoints have the source static`() {
        #expect(Formatting.source(.config) == "static")
        #expect(Formatting.source(.usbmuxd) == "usbmuxd")
    }
}
