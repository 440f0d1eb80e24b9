import ArgumentParser
import Client
import Model
import Samples
import Testing

@testable import patchbay

@Suite struct LogCommandTests {
    private static let udid: UDID = "android-R58M12ABCDE"
    private let shop = SampleEndpoints.endpoint("com.example.shop", on: "Pixel 8", phone: udid)
    private let pixel = SampleEndpoints.device(udid, name: "Pixel 8")

    private func choose(_ text: String) throws -> LogClient.Subject {
        try LogSubjectSelector(text: text).choose(among: [shop], [pixel])
    }

    @Test(arguments: ["shop-pixel-8", "shop", "com.example.shop", "SHOP-PIXEL"])
    func `the names of an app mean its log`(text: String) throws { #expect(try choose(text) == .endpoint(shop.id)) }

    @Test(arguments: ["android-R58M12ABCDE", "R58M12", "pixel 8"])
    func `the UDID, the serial and the name of a phone mean the whole log, also with one app there`(text: String) throws
    {
        #expect(try choose(text) == .device(Self.udid))
    }

    @Test func `a phone that is not attached is named by its UDID, and another text by nothing`() throws {
        let absent: UDID = "android-RZ8N90XYZ12"
        #expect(try choose(absent.text) == .device(absent))
        let error = #expect(throws: CLIError.self) { try choose("nothing") }
        #expect(error?.message.contains("no endpoint matches") == true)
    }

    @Test(arguments: [[], ["shop", "--lines", "-1"], ["shop", "-n", "10001"], ["shop", "bank"]])
    func `wrong arguments are refused`(words: [String]) {
        #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(["log"] + words) }
    }

    @Test func `log and logs name each other in their help`() {
        func words(_ help: String) -> String { help.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
        #expect(words(Patchbay.helpMessage(for: LogCommand.self)).contains("patchbay logs"))
        #expect(words(Patchbay.helpMessage(for: LogsCommand.self)).contains("patchbay log."))
    }
}
