/// What a request is answered from: how things are at one moment.
struct FacadeView: Hashable, Sendable {
    var phones = PhoneBook()
    /// Who listens, by the number of the client.
    var listeners: [UInt32: ListeningProgram] = [:]
}
