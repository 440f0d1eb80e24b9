import Foundation
import TestSupport
import Testing

/// Bash, zsh and fish complete the objects of the broker with the generated scripts.
@Suite(.needs(.shells, .python), .scratchFolder) struct CompletionTests {
    private let scratch = ScratchFolder.current

    /// A command line before the cursor, and a word that the shell must offer.
    private static let lines = [
        ("patchbay show ", "staging"), ("patchbay forward --endpoint sta", "staging"),
        ("patchbay tunnels rm ", "t1"), ("patchbay call staging get_el", "get_elements"),
        ("patchbay tunnels ", "list"), ("patchbay forward --no-r", "--no-rebind"),
    ]

    /// Types `$LINE` and the Tab key, and prints what the shell shows. Fish and zsh complete only in a terminal, which
    /// zsh provides.
    private static let scripts = [
        "bash": """
        source "$SCRIPT"; COMP_LINE=$LINE; COMP_POINT=${#LINE}; COMP_TYPE=9; read -ra COMP_WORDS <<<"$LINE"
        [ "${LINE% }" = "$LINE" ] || COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
        "$(complete -p patchbay | sed -E 's/.*-F ([^ ]+).*/\\1/')" patchbay "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
        printf '%s\\n' "${COMPREPLY[@]}"
        """,
        "zsh": terminal("zsh -f -i", "PS1=; fpath=(${SCRIPT:h} \\$fpath); autoload -Uz compinit; compinit -u -D"),
        "fish": terminal("fish --no-config --private", "source $SCRIPT; function fish_prompt; end"),
    ]

    private static func terminal(_ shell: String, _ setup: String) -> String {
        """
        zmodload zsh/zpty; zpty shell 'echo $$ >"$HOME/pid"; exec \(shell)'
        zpty -w shell "\(setup)"; zpty -w shell "echo rea''dy"; zpty -r -m shell out '*ready*'; out=
        zpty -w -n shell "$LINE"$'\\t\\t'
        for i in {1..100}; do zpty -r -t shell part && out+=$part; [[ $out == *$CANDIDATE* ]] && break; sleep 0.1; done
        print -r -- "$out"
        # fish survives the end of its terminal at times.
        kill -KILL "$(<$HOME/pid)"; zpty -d shell
        """
    }

    @Test(arguments: ["bash", "zsh", "fish"])
    func `a shell completes commands, options, endpoints, tunnels and tools`(shell: String) async throws {
        let app = try await SampleApp(in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            configuration: """
                [[endpoint]]
                name = "staging"
                address = "127.0.0.1"
                port = \(app.port)
                kind = "appreveal"
                """
        )
        _ = try await broker.ask("forward", "tcp:0", "--endpoint", "staging", "--detach")
        let built = String(try Executable.built("patchbay").dropLast("/patchbay".count))
        let text = try await Program.run("\(built)/patchbay", ["--generate-completion-script", shell], in: scratch)
        let script = try scratch.write(text.joined(separator: "\n") + "\n", to: "_patchbay")
        for (line, candidate) in Self.lines {
            let output = try await Program.run(
                shell == "bash" ? "bash" : "zsh",
                ["-c", try #require(Self.scripts[shell])],
                in: scratch,
                environment: [
                    "LINE": line, "CANDIDATE": candidate, "SCRIPT": script, "PATCHBAY_SOCKET": broker.socket,
                    "TERM": "dumb",
                    "PATH": "\(built):/usr/bin:/bin", "HOME": scratch.path, "LC_ALL": "C.UTF-8",
                ]
            )
            #expect(output.joined(separator: "\n").contains(candidate), "\(line): \(output)")
        }
    }

    @Test func `completion without a broker prints nothing and succeeds`() async throws {
        let words = ["---completion", "tunnels", "rm", "--", "positional@0", "3", "0", "patchbay", "tunnels", "rm", ""]
        let output = try await Program.run(
            Executable.built("patchbay"),
            words,
            in: scratch,
            environment: ["PATCHBAY_SOCKET": scratch.file("none")]
        )
        #expect(output.joined().isEmpty)
    }
}
