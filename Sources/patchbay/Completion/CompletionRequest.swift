import ArgumentParser
import Client
import Model

/// A hidden call of a completion script: `patchbay ---completion tunnels rm -- positional@0 3 0 patchbay tunnels rm ""`.
///
/// Without a broker it prints nothing, because a shell shows errors in the middle of the command line.
struct CompletionRequest {
    /// The words of the command that are complete, without `patchbay`.
    let words: [String]

    /// Within this time the broker answers, or nothing is offered.
    static let limit = Duration.seconds(1)

    /// - Returns: nil if the command line is not the call of a completion script.
    init?(_ arguments: [String]) {
        // The words follow the name of the argument, the index of the word and the position of the cursor.
        guard arguments.first == "---completion", let separator = arguments.firstIndex(of: "--"),
            arguments.count > separator + 4
        else { return nil }
        let typed = arguments[(separator + 4)...]
        let index = Int(arguments[separator + 2]) ?? typed.count
        words = Array(typed.prefix(index).dropFirst())
    }

    /// Replaces the placeholder in the answer of the parser by the objects of the broker.
    func completed(_ answer: String) async -> String {
        guard let source = CompletionSource.allCases.first(where: { answer.contains($0.placeholder) }) else {
            return answer
        }
        let candidates = await candidates(of: source).filter(Self.isPlain)
        return answer.replacing(source.placeholder, with: candidates.joined(separator: "\n"))
    }

    private func candidates(of source: CompletionSource) async -> [String] {
        let broker = value(of: "--broker")
        // A connection of ssh takes longer than the limit, and may ask for a password.
        if broker?.hasPrefix("ssh://") == true { return [] }
        guard let client = try? GlobalOptions.client(socket: value(of: "--socket"), broker: broker) else { return [] }
        return await withTaskGroup { group in
            group.addTask { (try? await source.candidates(client, words: words)) ?? [] }
            group.addTask {
                // The shell waits for the answer, so a slow broker gets no more time. An answer ends the wait.
                try? await Task.sleep(for: Self.limit)
                return []
            }
            defer { group.cancelAll() }
            return await group.next() ?? []
        }
    }

    /// The value of an option among the words, as `--socket PATH` or `--socket=PATH`.
    private func value(of option: String) -> String? {
        if let word = words.last(where: { $0.hasPrefix("\(option)=") }) {
            return String(word.dropFirst(option.count + 1))
        }
        guard let index = words.lastIndex(of: option) else { return nil }
        return words[(index + 1)...].first
    }

    /// True for a text without characters that a shell interprets. An app chooses the names of its tools.
    private static func isPlain(_ text: String) -> Bool {
        !text.hasPrefix("-")
            && text.utf8.allSatisfy { $0.isLetterOrDigit || "-_.:/".utf8.contains($0) }
    }
}
