import Testing

@testable import bench

@Suite struct MuxConversationTests {
    private let apps: [UInt16: App] = [9_876: .echo]

    @Test func `a Connect in pieces opens the app at that port, once it is whole`() {
        var conversation = MuxConversation(udid: Phone.udid, apps: apps)
        let request = MuxMessage.connect(port: 9_876)

        conversation.append(request.dropLast())
        #expect(conversation.next() == .wait)
        conversation.append(request.suffix(1))
        #expect(conversation.next() == .open(.echo, answer: MuxMessage.result(0, tag: 1)))
    }

    @Test func `a port where no app listens is refused, and the conversation goes on`() {
        var conversation = MuxConversation(udid: Phone.udid, apps: apps)

        conversation.append((MuxMessage.connect(port: 1) + MuxMessage.connect(port: 9_876))[...])
        #expect(conversation.next() == .answer(MuxMessage.result(3, tag: 1)))
        #expect(conversation.next() == .open(.echo, answer: MuxMessage.result(0, tag: 1)))
    }

    @Test func `an order is read as it was written`() {
        let order = Order(length: 123_456_789_012, isPattern: true)

        #expect(Order(order.bytes) == order)
        #expect(Order([1, 2, 3]) == nil)
    }
}
