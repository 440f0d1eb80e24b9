import FoundationEssentials
import Testing

@testable import Devices

@Suite struct UsbmuxRequestTests {
    private struct Wire: Decodable {
        var MessageType: String
        var ProgName: String
        var ClientVersionString: String
        var kLibUSBMuxVersion: Int
        var DeviceID: Int?
        var PortNumber: Int?
    }

    private static func plist(of request: UsbmuxRequest) throws -> Wire? {
        guard case .propertyList(let bytes) = request.message.body else { return nil }
        try PropertyListValidator.validate(bytes)
        return try PropertyListDecoder().decode(Wire.self, from: Data(bytes))
    }

    @Test(arguments: [(1, 1), (7, 62_078), (.max, .max)] as [(UInt32, UInt16)])
    func `a Connect has the DeviceID, and the port in network byte order`(deviceID: UInt32, port: UInt16) throws {
        let plist = try #require(try Self.plist(of: .connect(deviceID: deviceID, port: port)))

        #expect(plist.MessageType == "Connect" && plist.ProgName == "patchbay" && plist.kLibUSBMuxVersion == 3)
        #expect(plist.DeviceID == Int(deviceID))
        #expect(plist.PortNumber == Int(port.bigEndian))
        #expect(port != 62_078 || plist.PortNumber == 32_498)
    }

    @Test(arguments: [("Listen", UsbmuxRequest.listen), ("ListDevices", .listDevices)])
    func `other requests contain a name and the program`(name: String, request: UsbmuxRequest) throws {
        let plist = try #require(try Self.plist(of: request))

        #expect(plist.MessageType == name)
        #expect(plist.kLibUSBMuxVersion == 3)
        #expect(plist.ProgName == "patchbay" && plist.ClientVersionString == "patchbay")
        #expect(plist.DeviceID == nil)
    }
}
