/// Why a server's answer to a hello says nothing about what it is.
enum ProbeError: Error {
    /// It sent something before it was asked, which no HTTP server does.
    case speaksFirst
    case tooMuch
    case endedEarly
}
