import FoundationEssentials
import Model
import Testing

@Suite struct ListResponseTests {
    private func json<Item: ListItem>(_ list: ListResponse<Item>) throws -> String {
        String(decoding: try JSONCoding.encoder().encode(list), as: UTF8.self)
    }

    @Test func `the type of the items determines the name of the member`() throws {
        #expect(try json(ListResponse<Device>([])) == #"{"devices":[],"schema":1}"#)
        #expect(try json(ListResponse<Tunnel>([])) == #"{"schema":1,"tunnels":[]}"#)
        #expect(try json(ListResponse<Advertisement>([])) == #"{"advertisements":[],"schema":1}"#)
        #expect(try json(ListResponse<Approval>([])) == #"{"approvals":[],"schema":1}"#)
        #expect(try json(ListResponse<Grant>([])) == #"{"grants":[],"schema":1}"#)
        #expect(try json(ListResponse<Invite>([])) == #"{"invites":[],"schema":1}"#)
        #expect(try json(ListResponse<AccessRequest>([])) == #"{"requests":[],"schema":1}"#)
    }

    @Test func `a list is decoded unchanged`() throws {
        let udid = try #require(UDID("00008030-001C2D223A00802E"))
        let list = ListResponse([Device(udid: udid, transport: .usb, attachedAt: Date(timeIntervalSince1970: 1))])

        let data = try JSONCoding.encoder().encode(list)

        #expect(try JSONCoding.decoder().decode(ListResponse<Device>.self, from: data) == list)
    }

    @Test(arguments: ["{\"devices\":[]}", "{\"schema\":1}", "{\"schema\":1,\"tunnels\":[]}"])
    func `a document without its members is rejected`(text: String) {
        #expect(throws: DecodingError.self) {
            try JSONCoding.decoder().decode(ListResponse<Device>.self, from: Data(text.utf8))
        }
    }
}
