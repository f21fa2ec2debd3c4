# Makes a manual page from what a program prints and from README.md:
#   oscrun --help | awk -v page=oscrun.1 -v version=V -f man.awk >oscrun.1
#   osc_info --markdown | awk -v page=osc.7 -v version=V -v readme=README.md -f man.awk >osc.7
# A line of help "  WORDS: text" is an item, and four blanks continue it. A row of a table "| `NAME` | value | default |
# meaning |" is an option, and the table's first line names the section.

# Text as roff: `x` and WORDS are bold.
function roff(text) {
    gsub(/\\\|/, "|", text)
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    while (match(text, /`[^`]*`/))
        text = substr(text, 1, RSTART - 1) "\\fB" substr(text, RSTART + 1, RLENGTH - 2) "\\fR" substr(text, RSTART + RLENGTH)
    return text ~ /^[.']/ ? "\\&" text : text
}
function section(title) { print ".SH " toupper(title) }
function item(words, text) {
    printf ".TP\n.B %s\n", roff(words)
    if (text != "") print roff(text)
}

BEGIN {
    does["oscrun"] = "starts an MPI job with libosc"
    does["osc_info"] = "prints libosc's options, and checks machines, jobs and programs"
    does["osc"] = "MPI one-sided communication over an existing MPI"
    split(page, name, ".")
    printf ".TH %s %s \"\" \"libosc %s\"\n", toupper(name[1]), name[2], version
    print ".nh\n.ad l"
    section("Name")
    print name[1] " \\- " does[name[1]]
    if (readme != "") {
        section("Description")
        # The first paragraph behind the title.
        while ((getline line <readme) > 0 && (line !~ /^$/ || text == ""))
            if (line !~ /^(#.*)?$/) print text = roff(line)
    }
    FS = " [|] "
}

/^usage: / { section("Synopsis"); print roff(substr($0, 8)); next }
/^  Exit status: / { section("Exit status"); print roff(substr($0, 16)); next }
/^  [^ ]/ {
    if (!described++) section("Description")
    colon = index($0, ": ")
    if (colon) item(substr($0, 3, colon - 3), substr($0, colon + 2))
    else if ($0 ~ /^  -/) item(substr($0, 3), "")
    else printf ".PP\n%s\n", roff(substr($0, 3))
    next
}
/^ +[^ ]/ { sub(/^ +/, ""); print roff($0); next }

/^[|] (variable|key)/ { sub(/^[|] /, "", $1); gsub(/`/, "", $1); section($1 ~ /^variable/ ? "Environment" : $1 "s"); next }
/^[|] `/ {
    sub(/^[|] /, "", $1)
    gsub(/`/, "", $1)
    sub(/ [|]$/, "", $4)
    gsub(/`/, "", $3)
    item($1, $2 ($3 == "" ? "" : "; default `" $3 "`") ". " toupper(substr($4, 1, 1)) substr($4, 2))
    next
}

END {
    section("See also")
    printf "%s; GUIDE.md and TROUBLESHOOTING.md in share/doc/osc/docs\n", \
        name[1] == "osc" ? "oscrun(1), osc_info(1)" : "osc(7), " (name[1] == "oscrun" ? "osc_info(1)" : "oscrun(1)")
}
