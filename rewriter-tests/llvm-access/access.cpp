// Answers, line by line, which registers LLVM says an AMDGPU instruction reads and writes.
//
// Input: `TARGET[,+FEATURE...] HEXBYTES [PC]`, as llvm-oracle takes it. First line of output: `ready`. Then for each
// line of input `-` when LLVM rejects it, or
//
//     SIZE<TAB>OPCODE<TAB>READS<TAB>WRITES<TAB>FLAGS<TAB>SCHEDULING
//
// READS and WRITES are registers of 32 bits separated by spaces, sorted, each once: v7, v7.l and v7.h (halves), a7, s7,
// ttmp3, vcc_lo, exec_hi, scc, m0, mode ... What the instruction does not name, its implicit registers, has a `+` in
// front. A source that is tied to a result is read. FLAGS: load, store, branch, terminator, call, barrier, return,
// indirect, and untied where the record has a further register operand that decoding leaves out (the old value of the
// result, see the loads of 16 bits). Each answer is written before the next question is read, so that a reader knows on
// which one LLVM died.
//
// The registers are those of the decoded MCInst's operands and of its MCInstrDesc, so widths are those that were
// decoded, not a class's.

#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSchedule.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/TargetParser/Triple.h"

#include <cctype>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

extern "C" void LLVMInitializeAMDGPUTargetInfo();
extern "C" void LLVMInitializeAMDGPUTarget();
extern "C" void LLVMInitializeAMDGPUTargetMC();
extern "C" void LLVMInitializeAMDGPUDisassembler();

using namespace llvm;

namespace {

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool isHalf(const std::string &name) { return endsWith(name, "_LO16") || endsWith(name, "_HI16"); }

// The short name of a register that has no parts but halves.
std::string shortName(std::string name) {
  for (const char *suffix : {"_gfxpre11", "_gfx11plus", "_gfx9plus", "_vi", "_ci"})
    if (endsWith(name, suffix))
      name.resize(name.size() - std::string(suffix).size());
  std::string half;
  if (isHalf(name)) {
    half = endsWith(name, "_LO16") ? ".l" : ".h";
    name.resize(name.size() - 5);
  }
  // The suffix of the target may stand before the half's.
  for (const char *suffix : {"_gfxpre11", "_gfx11plus", "_gfx9plus", "_vi", "_ci"})
    if (endsWith(name, suffix))
      name.resize(name.size() - std::string(suffix).size());
  for (auto [prefix, ours] : {std::pair<const char *, const char *>{"VGPR", "v"}, {"AGPR", "a"}, {"SGPR", "s"}})
    if (name.rfind(prefix, 0) == 0 && name.size() > 4 && isdigit(static_cast<unsigned char>(name[4])))
      return ours + name.substr(4) + half;
  for (char &c : name)
    c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
  return name + half;
}

// A disassembler for one processor.
class Processor {
  std::unique_ptr<MCRegisterInfo> registers;
  std::unique_ptr<MCAsmInfo> syntax;
  std::unique_ptr<MCSubtargetInfo> subtarget;
  std::unique_ptr<MCInstrInfo> instructions;
  std::unique_ptr<MCContext> context;
  std::unique_ptr<MCDisassembler> disassembler;
  std::map<unsigned, std::vector<std::string>> parts;

public:
  static std::unique_ptr<Processor> open(const std::string &name) {
    Triple triple("amdgcn-amd-amdhsa");
    std::string error;
    const Target *target = TargetRegistry::lookupTarget(triple, error);
    if (!target)
      return nullptr;
    auto comma = name.find(',');
    std::string cpu = name.substr(0, comma), features = comma == std::string::npos ? "" : name.substr(comma + 1);
    auto made = std::make_unique<Processor>();
    MCTargetOptions options;
    made->registers.reset(target->createMCRegInfo(triple));
    made->syntax.reset(target->createMCAsmInfo(*made->registers, triple, options));
    made->subtarget.reset(target->createMCSubtargetInfo(triple, cpu, features));
    if (!made->subtarget || !made->subtarget->isCPUStringValid(cpu))
      return nullptr;
    made->instructions.reset(target->createMCInstrInfo());
    made->context = std::make_unique<MCContext>(
        triple, made->syntax.get(), made->registers.get(), made->subtarget.get(), nullptr, &options);
    made->disassembler.reset(target->createMCDisassembler(*made->subtarget, *made->context));
    return made->disassembler ? std::move(made) : nullptr;
  }

  // The 32-bit registers (or the half) that a register of any width is made of.
  const std::vector<std::string> &leaves(MCRegister reg) {
    auto [at, fresh] = parts.try_emplace(reg.id());
    if (fresh) {
      for (MCPhysReg part : registers->subregs_inclusive(reg)) {
        bool whole = true;
        for (MCPhysReg smaller : registers->subregs(part))
          whole &= isHalf(registers->getName(smaller));
        bool half = isHalf(registers->getName(part));
        if (half ? part == reg.id() : whole)
          at->second.push_back(shortName(registers->getName(part)));
      }
    }
    return at->second;
  }

  std::optional<std::string> answer(const std::vector<uint8_t> &bytes, uint64_t pc) {
    MCInst inst;
    uint64_t size = 0;
    if (disassembler->getInstruction(inst, size, bytes, pc, nulls()) != MCDisassembler::Success)
      return std::nullopt;
    const MCInstrDesc &desc = instructions->get(inst.getOpcode());
    std::set<std::string> reads, writes;
    auto add = [&](std::set<std::string> &to, MCRegister reg, const char *mark) {
      for (const std::string &leaf : leaves(reg))
        to.insert(mark + leaf);
    };
    for (unsigned i = 0; i < inst.getNumOperands(); ++i) {
      const MCOperand &operand = inst.getOperand(i);
      if (!operand.isReg() || !operand.getReg())
        continue;
      add(i < desc.getNumDefs() ? writes : reads, operand.getReg(), "");
      // A source that is tied to this result is the same register, whether the decoder has added it or not.
      for (unsigned j = desc.getNumDefs(); j < desc.getNumOperands() && i < desc.getNumDefs(); ++j)
        if (desc.getOperandConstraint(j, MCOI::TIED_TO) == static_cast<int>(i))
          add(reads, operand.getReg(), "");
    }
    for (MCPhysReg reg : desc.implicit_uses())
      add(reads, reg, "+");
    for (MCPhysReg reg : desc.implicit_defs())
      add(writes, reg, "+");
    // A register operand of the description that the decoded instruction lacks: the old value of a result, whose tie
    // the record lost.
    bool untied = false;
    for (unsigned i = inst.getNumOperands(); i < desc.getNumOperands(); ++i)
        untied |= desc.getOperandConstraint(i, MCOI::TIED_TO) == -1 &&
                  desc.operands()[i].OperandType == MCOI::OPERAND_REGISTER;
    std::ostringstream out;
    auto list = [&](const std::set<std::string> &names) {
      const char *separator = "";
      for (const std::string &name : names) {
        out << separator << name;
        separator = " ";
      }
    };
    out << size << '\t' << instructions->getName(inst.getOpcode()).str() << '\t';
    list(reads);
    out << '\t';
    list(writes);
    out << '\t';
    const char *separator = "";
    for (auto [holds, name] : {std::pair<bool, const char *>{desc.mayLoad(), "load"},
                               {desc.mayStore(), "store"},
                               {desc.isBranch(), "branch"},
                               {desc.isTerminator(), "terminator"},
                               {desc.isCall(), "call"},
                               {desc.isBarrier(), "barrier"},
                               {desc.isReturn(), "return"},
                               {desc.isIndirectBranch(), "indirect"},
                               {untied, "untied"}})
      if (holds) {
        out << separator << name;
        separator = " ";
      }
    out << '\t' << desc.getSchedClass();
    return out.str();
  }
};

std::optional<std::vector<uint8_t>> parseHex(const std::string &hex) {
  std::vector<uint8_t> bytes;
  if (hex.size() % 2)
    return std::nullopt;
  for (size_t i = 0; i < hex.size(); i += 2) {
    unsigned value;
    if (!isxdigit(static_cast<unsigned char>(hex[i])) || !isxdigit(static_cast<unsigned char>(hex[i + 1])))
      return std::nullopt;
    sscanf(hex.c_str() + i, "%2x", &value);
    bytes.push_back(static_cast<uint8_t>(value));
  }
  return bytes;
}

} // namespace

int main(int argc, char **) {
  if (argc > 1) {
    std::cerr << "usage: llvm-access   (reads lines \"TARGET[,+FEATURE...] HEXBYTES [PC]\" from standard input)\n";
    return 2;
  }
  LLVMInitializeAMDGPUTargetInfo();
  LLVMInitializeAMDGPUTarget();
  LLVMInitializeAMDGPUTargetMC();
  LLVMInitializeAMDGPUDisassembler();
  std::map<std::string, std::unique_ptr<Processor>> open;
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string target, hex, pc = "0";
    words >> target >> hex >> pc;
    auto [at, fresh] = open.try_emplace(target);
    if (fresh)
      at->second = Processor::open(target);
    auto bytes = parseHex(hex);
    auto answer = at->second && bytes ? at->second->answer(*bytes, strtoull(pc.c_str(), nullptr, 16)) : std::nullopt;
    std::cout << answer.value_or("-") << std::endl;
  }
}
